"""One stage of a plan by itself."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.domain.plan import Plan
from pipebench_torch.modules.building import model_of
from pipebench_torch.placing.layout import layout_of
from pipebench_torch.placing.pieces import traffic_of
from pipebench_torch.running.stage import StageRun
from tests.plugins.torch.small import diamond, problem_of, stages


def test_gradients_are_asked_for_where_somebody_waits_for_them() -> None:
    """Of what a stage receives, not of the model's inputs."""
    problem = problem_of(diamond(), 2, 4)
    names = [op.name for op in problem.profile.graph.operators]
    plan = Plan(stages=stages([names[:1], names[1:]], micro_batch=2))
    model = model_of(problem, seed=0)
    traffic = traffic_of(model.graph, layout_of(plan, problem.mini_batch))
    runs = [StageRun(model, problem, plan, position, traffic) for position in (0, 1)]
    for run in runs:
        run.versions = {0: {name: model.weight(name).requires_grad_() for name in run.parameters}}
    (entry,) = runs[0].model_inputs
    first = model.input(entry, 2)
    sent = runs[0].forward(0, {entry: first}, 0, 0, (2,))
    assert not first.requires_grad
    runs[1].forward(0, sent, 0, 0, (2,))
    back = runs[1].backward(0, {}, "B", 0, (2,))
    assert set(back) == set(sent) == set(runs[1].received)
    assert runs[0].backward(0, back, "B", 0, (2,)) == {}
    assert set(runs[0].gradients[0]) == set(runs[0].parameters)
