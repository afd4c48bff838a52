"""One stage of a plan by itself: which gradients it computes."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch

from pipebench.bench.problems.plugin_sources import build_graph
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.hooks.syntax import parse_reference
from pipebench_torch.modules.profile_models import model_of
from pipebench_torch.placing.layout import layout_of
from pipebench_torch.placing.messages import traffic_of
from pipebench_torch.profiling.passes import passes_of
from pipebench_torch.running.stage import StageRun
from tests.plugins.running import services
from tests.plugins.torch.small import diamond, problem_of, stages


def without_its_embedding() -> OperatorGraph:
    """A model whose inputs come from something that learns."""
    return build_graph(services().host, parse_reference("tiny-mmt[layers=1]"))


@pytest.mark.parametrize(("graph", "learns"), [(diamond(), False), (without_its_embedding(), True)])
def test_gradients_are_computed_where_somebody_waits_for_them(graph: OperatorGraph, learns: bool) -> None:
    """Of what a stage receives; of the model's inputs where the graph says so, in a run as in a profile."""
    problem = problem_of(graph, 2, 4)
    names = [op.name for op in graph.operators]
    plan = Plan(stages=stages([names[:-1], names[-1:]], micro_batch=2))
    model = model_of(problem, seed=0)
    traffic = traffic_of(model.graph, layout_of(plan, problem.mini_batch))
    runs = [StageRun(model, problem, plan, position, traffic) for position in (0, 1)]
    for run in runs:
        run.versions = {0: {name: model.weight(name).requires_grad_() for name in run.parameters}}
    entries = {entry: model.input(entry, 2) for entry in runs[0].model_inputs}
    sent = runs[0].forward(0, entries, 0, 0, (2,))
    assert {value.requires_grad for value in entries.values()} == {learns}
    runs[1].forward(0, sent, 0, 0, (2,))
    back = runs[1].backward(0, {}, "B", 0, (2,))
    assert set(back) == set(sent) == set(runs[1].received)
    assert runs[0].backward(0, back, "B", 0, (2,)) == {}
    assert set(runs[0].gradients[0]) == set(runs[0].parameters)


@pytest.mark.parametrize(("graph", "learns"), [(diamond(), False), (without_its_embedding(), True)])
def test_a_profile_computes_the_same_and_adds_nothing_up(graph: OperatorGraph, learns: bool) -> None:
    passes = passes_of(model_of(problem_of(graph, 2, 4), seed=0), 2, torch.device("cpu"))
    made = []
    for _ in range(2):
        passes.whole()
        made.append([None if value.grad is None else value.grad.clone() for value in passes.inputs.values()])
    assert all((gradient is not None) == learns for gradient in made[0])
    if learns:
        assert all(torch.equal(one, other) for one, other in zip(*made, strict=True))
    before = [weight.grad.clone() for weight in passes.weights.values()]
    passes.timed_pass().run()
    assert any(
        not torch.equal(was, weight.grad) for was, weight in zip(before, passes.weights.values(), strict=True)
    )
