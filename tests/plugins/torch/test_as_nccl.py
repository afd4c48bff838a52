"""What is said to NCCL, said to gloo with its ways: no tags, pairs that wait for each other, events."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, Lane, Schedule
from pipebench_torch import executor
from tests.plugins.running import services
from tests.plugins.torch.small import diamond, image, problem_of, run, stages

pytestmark = pytest.mark.usefixtures("warm")

WORKER = Path(__file__).with_name("as_nccl.py")


def as_cards(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """The executor finds cards, and starts the other worker."""
    start = executor.run_ranks

    def other(command: list[str], *rest: object) -> None:
        assert command[1:4] == ["-P", "-m", "pipebench_torch.running.worker"]
        start([command[0], str(WORKER), *command[4:]], *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(executor, "run_ranks", other)
    monkeypatch.setattr(executor, "device_and_backend", lambda *_: ("cuda", backend))


Case = tuple[Problem, Plan, Schedule]


def branches() -> Case:
    """A diamond of stages, whose first one also sends past its branches."""
    names = [("a",), ("b0", "b"), ("c",), ("concat", "d", "e")]
    problem, plan = problem_of(diamond(), 4, 8), Plan(stages=stages(names, micro_batch=2))
    return problem, plan, services().schedule("1f1b", problem, plan)


def uneven() -> Case:
    """Replicas, and micro-batches of several sizes."""
    problem = problem_of(image(), 4, 12)
    names = [op.name for op in problem.profile.graph.operators]
    groups, places = [names[:3], names[3:7], names[7:]], [(0,), (1, 3), (2,)]
    plan = Plan(stages=stages(groups, micro_batch=[2, 3, 6], devices=places))
    return problem, plan, services().schedule("gpipe", problem, plan)


def ring() -> Case:
    """Stages that go around the devices twice: each process sends to the next, the last one to the first."""
    problem = problem_of(diamond(), 3, 4)
    names = [(op.name,) for op in problem.profile.graph.operators]
    count = len(names)
    places = [(position % 3,) for position in range(count)]
    plan = Plan(stages=stages(names, micro_batch=2, devices=places), placement="listed")
    lanes = []
    for device in range(3):
        mine = [stage for stage in range(count) if stage % 3 == device]
        tasks = [(stage, m) for stage in mine for m in (0, 1)]
        back = [(stage, m) for stage in reversed(mine) for m in (0, 1)]
        lanes.append(
            Lane(
                devices=(device,),
                stage=tuple(stage for stage, _ in tasks + back),
                micro_batch=tuple(m for _, m in tasks + back),
                kinds="F" * len(tasks) + "B" * len(back),
            )
        )
    return problem, plan, FiniteSchedule(lanes=tuple(lanes))


def in_turn() -> Case:
    """Two replicas in turn whose sums go on beside the messages, of three micro-batches in each mini-batch."""
    problem = problem_of(image(), 3, 6, "async")
    names = [op.name for op in problem.profile.graph.operators]
    first, last = stages([names[:5], names[5:]], micro_batch=2, devices=[(0, 1), (2,)])
    plan = Plan(stages=(replace(first, replicas="round_robin"), last))
    return problem, plan, services().schedule("1f1b-rr", problem, plan)


@pytest.mark.parametrize(
    ("made", "backend"),
    [(in_turn, "nccl"), (branches, "nccl"), (uneven, "nccl"), (ring, "nccl"), (branches, "gloo")],
)
def test_gradients_are_right_on_cards(
    made: Callable[[], Case], backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_cards(monkeypatch, backend)
    problem, plan, schedule = made()
    trace, said = run(problem, plan, schedule, device="auto")
    assert said.startswith("gradients equal those of a single process")
    assert "this ran on a made card" in said
    assert trace.total_ns > max(trace.end_ns) - min(trace.start_ns) > 0
    assert all(10**6 < memory.peak_bytes < 1.1e6 for memory in trace.memory)  # above what was there at first
