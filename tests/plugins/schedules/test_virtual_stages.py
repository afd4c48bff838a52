"""Schedules of several stages a device, and of split backwards, against those that torch ships."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from pipebench.check import check_schedule
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.formats.frameworks.torch_schedule import as_schedule, cells_of, read_cells, read_torch_schedule
from pipebench.hooks.context import Context
from pipebench.simulation.simulate import simulate
from pipebench_schedules import interleaved, single_stage, zero_bubble
from pipebench_schedules.plugin import OneFOneBOptions
from tests.builders import chain_problem, cluster, stages_plan
from tests.shared_data import shared_data

Schedule = Callable[[Problem, Plan, Context], FiniteSchedule]


def shared(devices: int, rounds: int, count: int, vee: bool = False) -> tuple[Problem, Plan]:
    """A chain of equal stages with split backwards; stage k on device k % devices, or in a V."""
    stages = devices * rounds
    problem = chain_problem(
        [10] * stages, [20] * stages, cluster(devices), saved=[1] * stages, mode="sync", mini_batch=count
    )
    costs = problem.profile.costs[0]
    split = tuple(replace(each, weight_gradient_s=(1e-8,)) for each in costs.operators)
    profile = replace(problem.profile, costs=(replace(costs, operators=split),))
    plan = stages_plan([[stage] for stage in range(stages)])
    placed = tuple(
        replace(stage, devices=(min(k, 2 * devices - 1 - k) if vee else k % devices,))
        for k, stage in enumerate(plan.stages)
    )
    return replace(problem, profile=profile), replace(
        plan, stages=placed, placement=placement_kind_of([stage.devices for stage in placed])
    )


def made(work: Schedule, problem: Problem, plan: Plan) -> FiniteSchedule:
    return work(problem, plan, Context(options=OneFOneBOptions()))


@pytest.mark.parametrize(
    ("work", "rounds", "vee", "name"),
    [
        (interleaved.schedule, 2, False, "Interleaved1F1B_pp4_mb8_v2.csv"),
        (zero_bubble.schedule_v, 2, True, "ZBVZeroBubble_pp4_mb8_v2.csv"),
    ],
)
def test_the_order_is_torchs(work: Schedule, rounds: int, vee: bool, name: str) -> None:
    problem, plan = shared(4, rounds, 8, vee)
    path = str(shared_data(f"torch_schedules/{name}"))
    theirs = as_schedule(problem, plan, read_torch_schedule(path), name)
    assert made(work, problem, plan) == theirs
    assert check_schedule(problem, plan, theirs).status == "valid"


@pytest.mark.parametrize(("devices", "rounds", "count"), [(1, 1, 3), (2, 3, 4), (4, 2, 12), (3, 4, 3), (4, 1, 2)])
def test_interleaved_is_valid(devices: int, rounds: int, count: int) -> None:
    problem, plan = shared(devices, rounds, count)
    schedule = made(interleaved.schedule, problem, plan)
    assert check_schedule(problem, plan, schedule).status == "valid"
    # Bubble of (p - 1) (f + b) / v beside m v (f + b) of work a device (Narayanan et al. 2021, section 2.2.2).
    assert simulate(problem, plan, schedule).total_ns == 30 * (count * rounds + devices - 1)


def test_interleaved_with_one_stage_is_1f1b() -> None:
    problem, plan = shared(4, 1, 7)
    assert made(interleaved.schedule, problem, plan) == made(single_stage.schedule_1f1b, problem, plan)


def test_interleaved_wants_whole_groups() -> None:
    with pytest.raises(UnsupportedProblem, match="groups of 4"):
        made(interleaved.schedule, *shared(4, 2, 6))


@pytest.mark.parametrize("count", [1, 3, 8])
def test_zb_h1_waits_less_and_holds_as_much(count: int) -> None:
    problem, plan = shared(4, 1, count)
    split, whole = made(zero_bubble.schedule_h1, problem, plan), made(single_stage.schedule_1f1b, problem, plan)
    verdicts = [check_schedule(problem, plan, each) for each in (split, whole)]
    assert [verdict.status for verdict in verdicts] == ["valid", "valid"]
    assert max(verdicts[0].peak_bytes.values()) <= max(verdicts[1].peak_bytes.values())
    times = [simulate(problem, plan, each).total_ns for each in (split, whole)]
    assert times[0] < times[1] if count > 1 else times[0] <= times[1]


def test_zb_h1_bubble() -> None:
    """(p - 1) (F + I - W): Qi et al. 2023, table 2; here F = I = W = 10, all but one of the three hidden."""
    problem, plan = shared(4, 1, 8)
    assert simulate(problem, plan, made(zero_bubble.schedule_h1, problem, plan)).total_ns == 8 * 30 + 3 * 10


@pytest.mark.parametrize(("devices", "count"), [(1, 1), (2, 3), (4, 7), (4, 16)])
def test_zb_v_has_no_bubble_inside(devices: int, count: int) -> None:
    problem, plan = shared(devices, 2, count, vee=True)
    schedule = made(zero_bubble.schedule_v, problem, plan)
    verdict = check_schedule(problem, plan, schedule)
    assert verdict.status == "valid"
    assert max(verdict.peak_bytes.values()) <= 2 * devices


def test_zb_v_wants_a_v_and_enough_micro_batches() -> None:
    with pytest.raises(UnsupportedProblem, match="in a V"):
        made(zero_bubble.schedule_v, *shared(4, 2, 8))
    with pytest.raises(UnsupportedProblem, match="at least 7"):
        made(zero_bubble.schedule_v, *shared(4, 2, 6, vee=True))


CASES: list[tuple[Schedule, int, bool]] = [
    (interleaved.schedule, 1, False),
    (interleaved.schedule, 2, False),
    (zero_bubble.schedule_h1, 1, False),
    (zero_bubble.schedule_v, 2, True),
]


@pytest.mark.parametrize(("work", "rounds", "vee"), CASES)
def test_stages_that_wait_for_later_ones_are_refused(work: Schedule, rounds: int, vee: bool) -> None:
    """These orders run stages as they are listed; the same operators from the last to the first wait for ever."""
    problem, plan = shared(2, rounds, 4, vee)
    backwards = [stage.operators for stage in reversed(plan.stages)]
    stages = tuple(replace(stage, operators=each) for stage, each in zip(plan.stages, backwards, strict=True))
    with pytest.raises(UnsupportedProblem, match=r"deadlock.*list each stage behind"):
        made(work, problem, replace(plan, stages=stages))


@pytest.mark.parametrize(("work", "rounds", "vee"), CASES)
def test_what_the_plan_declares_in_flight_is_kept_or_refused(work: Schedule, rounds: int, vee: bool) -> None:
    problem, plan = shared(2, rounds, 4, vee)
    roomy = plan.with_in_flight([4] * len(plan.stages))
    assert made(work, problem, roomy) == made(work, problem, plan)
    with pytest.raises(UnsupportedProblem, match="stage 0 declares 1 samples in flight"):
        made(work, problem, plan.with_in_flight([1] * len(plan.stages)))


def test_our_csv_reads_back() -> None:
    problem, plan = shared(3, 2, 6)
    schedule = made(interleaved.schedule, problem, plan)
    text = cells_of(plan, schedule)
    assert text.startswith(b"0F0,0F1,0F2,3F0")
    assert [str(step.tasks[0]) for step in read_cells(text, "ours")[2]][:3] == ["2F0", "2F1", "2F2"]
