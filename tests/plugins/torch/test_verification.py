"""What the check of gradients tells apart."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench_torch.executor import ROUNDINGS
from pipebench_torch.modules.profile_models import for_checking, model_of
from pipebench_torch.placing.layout import layout_of
from pipebench_torch.running.verification import reference_gradients
from tests.plugins.torch.small import diamond, image, problem_of, stages


@pytest.mark.parametrize("graph", [diamond(), image()])
def test_weights_of_another_age_are_told_apart(graph: OperatorGraph) -> None:
    problem = problem_of(graph, 1, 4, "async")
    layout = layout_of(Plan(stages=stages([[op.name for op in graph.operators]], micro_batch=2)), 4, rounds=4)
    model = for_checking(model_of(problem, seed=0))
    fresh, old = (reference_gradients(model, layout, 4, delay) for delay in (0, 1))
    for name, gradient in fresh.items():
        apart = float((gradient - old[name]).abs().max() / gradient.abs().max())
        assert 1e-3 > apart > 1000 * ROUNDINGS * 2**-52
