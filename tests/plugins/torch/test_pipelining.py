"""Chains run by torch.distributed.pipelining compute what the executor's own engine computes, task by task."""

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.operators import linear
from pipebench_torch.placing.chains import chain_of
from tests.plugins.running import services
from tests.plugins.torch.small import diamond, image, problem_of, run, stages
from tests.plugins.torch.warm import WarmProcess

pytestmark = pytest.mark.usefixtures("warm")

EQUAL = "gradients equal those of a single process"


@pytest.fixture(scope="module", autouse=True)
def warm_pipelining(warm_process: WarmProcess) -> None:
    """torch.distributed.pipelining takes as long to import as torch itself."""
    warm_process.ask(modules=["pipebench_torch.running.pipelining"])


def deep(layers: int) -> OperatorGraph:
    """A chain of linear layers."""
    graph = GraphBuilder("deep")
    x = graph.input("x", 16)
    for number in range(layers):
        x = linear(graph, f"l{number}", x, 16)
    return graph.graph()


def test_both_engines_run_the_same_tasks() -> None:
    problem = problem_of(image(), 2, 8)
    names = [op.name for op in problem.profile.graph.operators]
    plan = Plan(stages=stages([names[:4], names[4:]], micro_batch=2, recompute=True))
    schedule = services().schedule("1f1b", problem, plan)
    own, said = run(problem, plan, schedule)
    theirs, told = run(problem, plan, schedule, engine="pipelining")
    assert said == f"{EQUAL}: exactly, in float64"
    assert told.startswith(f"{said}; run by torch.distributed.pipelining")
    for name in ("lanes", "lane", "stage", "micro_batch", "kinds"):
        assert getattr(own, name) == getattr(theirs, name)
    assert all(start < end for start, end in zip(theirs.start_ns, theirs.end_ns, strict=True))
    assert all(max(timeline.bytes) > 0 for timeline in theirs.memory)
    assert own.source
    assert not theirs.source


@pytest.mark.parametrize("scheduler", ["interleaved-1f1b", "zb-v"])
def test_several_stages_on_a_device_and_a_split_backward(scheduler: str) -> None:
    problem = problem_of(deep(4), 2, 8)
    places = [(0,), (1,), (0,), (1,)] if scheduler == "interleaved-1f1b" else [(0,), (1,), (1,), (0,)]
    plan = Plan(
        stages=stages([(f"l{number}",) for number in range(4)], micro_batch=2, devices=places), placement="listed"
    )
    schedule = services().schedule(scheduler, problem, plan)
    trace, told = run(problem, plan, schedule, engine="pipelining", iterations=1)
    assert told.startswith(EQUAL)
    assert ("W" in trace.kinds) == (scheduler == "zb-v")
    assert trace.lanes == ((0,), (1,))


def refused(problem: Problem, plan: Plan, schedule: Schedule | None = None) -> str:
    with pytest.raises(UnsupportedProblem) as caught:
        chain_of(problem, plan, schedule or services().schedule("gpipe", problem, plan))
    return caught.value.message


def test_what_it_cannot_express_is_unsupported_with_the_reason() -> None:
    fork = problem_of(diamond(), 4, 8)
    split = Plan(stages=stages([("a",), ("b0", "b"), ("c",), ("concat", "d", "e")], micro_batch=2))
    assert "stage 0 sends to stages 1 and 2" in refused(fork, split)
    skip = Plan(stages=stages([("a",), ("b0", "b", "c"), ("concat", "d", "e")], micro_batch=2))
    assert "stage 0 sends to stages 1 and 2" in refused(fork, skip)

    problem = problem_of(deep(2), 4, 8)
    halves = [("l0",), ("l1",)]
    assert "micro-batches of 2 and 4" in refused(problem, Plan(stages=stages(halves, micro_batch=[2, 4])))
    two = stages(halves, micro_batch=2, devices=[(0, 1), (2,)])
    assert "stage 0 has 2 replicas" in refused(problem, Plan(stages=two))
    assert "2 copies" in refused(problem, Plan(stages=stages(halves, micro_batch=2), copies=2))
    plan = Plan(stages=stages(halves, micro_batch=2))
    steady = problem_of(deep(2), 4, 8, "async")
    assert "no flush" in refused(steady, plan, services().schedule("1f1b*", steady, plan))
    assert chain_of(problem, plan, services().schedule("1f1b", problem, plan)) == (0, 1)
