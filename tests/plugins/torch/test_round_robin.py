"""Replicas that take micro-batches in turn compute what a single process computes, whoever has the fewest."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from msgspec.structs import replace

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.check import check_schedule
from pipebench.check.periodic import Pattern, read_pattern
from pipebench.check.trace import check_trace
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule
from pipebench.testing.plan_cases import in_order
from pipebench_torch.placing.chains import chain_of
from pipebench_torch.placing.layout import layout_of
from pipebench_torch.placing.orders import delay_in_turn, refuse_crossed_sums
from tests.plugins.running import services
from tests.plugins.torch.small import image, problem_of, run, stages

CLOCK_NS = 2_000_000
"""How far a completed receive may be seen late, when the receiver was busy."""
ONCE = {"iterations": 1, "warmup": 0}


@dataclass(frozen=True)
class Case:
    """Stages of a small model, by numbers of replicas; those of `split` share each micro-batch."""

    replicas: tuple[int, ...]
    mini_batch: int
    micro_batch: int = 2
    split: tuple[int, ...] = ()
    mode: RegimeMode = "sync"
    scheduler: str = "1f1b"

    def planned(self) -> tuple[Problem, Plan]:
        """The problem, and the plan on devices of its own for each stage."""
        problem = problem_of(image(), sum(self.replicas), self.mini_batch, self.mode)
        first, places = 0, []
        for count in self.replicas:
            places.append(tuple(range(first, first + count)))
            first += count
        return problem, Plan(stages=in_turn(problem, places, self.micro_batch, self.split))


def in_turn(
    problem: Problem, places: Sequence[Sequence[int]], micro_batch: int, split: Sequence[int] = ()
) -> tuple[Stage, ...]:
    """As many stages as places; replicas take turns but in the stages of `split`."""
    names = [op.name for op in problem.profile.graph.operators]
    cuts = [len(names) * number // len(places) for number in range(len(places) + 1)]
    groups = [names[cuts[number] : cuts[number + 1]] for number in range(len(places))]
    return tuple(
        stage if position in split else replace(stage, replicas="round_robin")
        for position, stage in enumerate(stages(groups, micro_batch=micro_batch, devices=places))
    )


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case((3, 1), 8, 1), id="three, then one, of 8 micro-batches"),
        pytest.param(Case((2, 3), 14, scheduler="gpipe"), id="two, then three, of 7 micro-batches"),
        pytest.param(Case((2, 3, 1), 16, split=(0,)), id="two that share beside three in turn"),
        pytest.param(Case((3, 1), 4), id="fewer micro-batches than replicas", marks=pytest.mark.nightly),
        pytest.param(
            Case((2, 3), 14, mode="async", scheduler="1f1b-rr"), id="without a flush", marks=pytest.mark.nightly
        ),
        pytest.param(
            Case((2, 3, 1), 4, split=(0,), mode="async", scheduler="1f1b-rr"), id="without a flush, fewer"
        ),
    ],
)
@pytest.mark.usefixtures("warm")
def test_gradients_and_traces_are_right(case: Case) -> None:
    problem, plan = case.planned()
    schedule = services().schedule(case.scheduler, problem, plan)
    assert check_schedule(problem, plan, schedule).status == "valid"
    trace, said = run(problem, plan, schedule, **ONCE)
    assert said.startswith("gradients equal those of a single process")
    assert (trace.period_ns is not None) == (case.mode == "async")
    assert len(trace.lanes) == sum(stage.turns for stage in plan.stages)
    # a receive is seen when its process looks: instants tell nothing of who had the link
    free = replace(problem, cluster=replace(problem.cluster, link_mode="delay"))
    without = replace(trace, memory=())  # of a process; a few MB of it are not the plan's
    verdict = check_trace(free, plan, schedule, without, tolerance_ns=CLOCK_NS)
    assert verdict.status == "valid", verdict.witness


@pytest.mark.usefixtures("warm")
def test_stages_on_the_same_replicas_and_copies() -> None:
    """A micro-batch stays where it is; the sums are over replicas and copies."""
    problem = problem_of(image(), 4, 12)
    plan = Plan(stages=in_turn(problem, [(0, 1), (0, 1)], 2), placement="listed", copies=2)
    trace, said = run(problem, plan, in_order(problem, plan), **ONCE)
    assert said.startswith("gradients equal those of a single process")
    assert not trace.source


def test_a_replica_has_whole_micro_batches() -> None:
    _, plan = Case((3, 2), 8, split=(1,)).planned()
    layout = layout_of(plan, 8)
    assert [list(layout.spans(0, number)) for number in range(4)] == [
        [(0, (0, 2))],
        [(1, (2, 4))],
        [(2, (4, 6))],
        [(0, (6, 8))],
    ]
    assert list(layout.spans(1, 1)) == [(0, (2, 3)), (1, (3, 4))]


@pytest.mark.parametrize("replicas", [(3, 1), (2, 3), (5, 1, 2)])
@pytest.mark.parametrize("micro_batches", [1, 2, 7])
def test_weights_are_as_old_as_the_last_replica_makes_them(replicas: tuple[int, ...], micro_batches: int) -> None:
    """The last backward of a mini-batch ends, on any replica, before a forward on weights made of it starts."""
    problem, plan = Case(replicas, 2 * micro_batches, mode="async").planned()
    schedule = services().schedule("1f1b-rr", problem, plan)
    assert isinstance(schedule, PeriodicSchedule)
    pattern = read_pattern(problem, CostModel(problem), plan, schedule)
    assert isinstance(pattern, Pattern)

    def is_enough(delay: int) -> bool:
        last, first = (
            micro_batches - 1,
            micro_batches * (1 + delay),
        )  # of the first, and of the next with its weights
        return all(
            pattern.backward[stage].end + last * pattern.period
            <= pattern.forward[stage].start + first * pattern.period
            for stage in range(len(plan.stages))
            if plan.stages[stage].turns > 1
        )

    delay = delay_in_turn(problem, layout_of(plan, 2 * micro_batches, rounds=3), schedule)
    assert is_enough(delay)
    assert delay == 0 or not is_enough(delay - 1)
    assert delay >= (max(replicas) - 1) // micro_batches


def crossed(problem: Problem, plan: Plan) -> FiniteSchedule:
    """The all-reduces of the second lane in the other order."""
    schedule = in_order(problem, plan)
    lanes = list(schedule.lanes)
    last = lanes[1]
    lanes[1] = replace(last, stage=(*last.stage[:-2], last.stage[-1], last.stage[-2]))
    return FiniteSchedule(lanes=tuple(lanes))


def test_sums_that_would_wait_for_each_other_are_refused() -> None:
    problem = problem_of(image(), 2, 8)
    plan = Plan(stages=in_turn(problem, [(0, 1), (0, 1)], 2), placement="listed")
    refuse_crossed_sums(problem, plan, in_order(problem, plan))
    schedule = crossed(problem, plan)
    assert check_schedule(problem, plan, schedule).status == "valid"
    with pytest.raises(UnsupportedProblem, match="would wait for each other's all-reduces: deadlock: R of stage"):
        refuse_crossed_sums(problem, plan, schedule)


def test_pipelining_refuses_them_by_name() -> None:
    problem, plan = Case((3, 1), 8).planned()
    with pytest.raises(
        UnsupportedProblem, match="stage 0 has 3 replicas that take micro-batches in turn"
    ) as caught:
        chain_of(problem, plan, services().schedule("gpipe", problem, plan))
    assert caught.value.hint == "engine=own runs it"
