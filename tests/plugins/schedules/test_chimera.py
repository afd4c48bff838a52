"""Chimera against its published bubbles (Li and Hoefler 2021, section 3.3 and table 2; section 3.5)."""

import pytest

from pipebench.bench.services import HostServices
from pipebench.check import check_schedule
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench.hooks.manager import Host
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from pipebench_schedules import chimera
from tests.builders import chain_problem, cluster, mirrored_plan

EVEN = (2, 4, 6, 8)


def mirrored(
    length: int, micro_batches: int, forward: int, backward: int, weights: int = 0
) -> tuple[Problem, Plan]:
    """Equal stages, one of each pipeline on every device; no communication unless there are weights to reduce."""
    problem = chain_problem(
        [forward] * length,
        [backward] * length,
        cluster(length),
        saved=[1] * length,
        weights=[weights] * length,
        mode="sync",
        mini_batch=micro_batches,
    )
    return problem, mirrored_plan([[stage] for stage in range(length)])


def total_ns(problem: Problem, plan: Plan) -> int:
    """Simulated, of a schedule that the check accepts."""
    schedule = chimera.schedule(problem, plan, Context(options=None))
    assert check_schedule(problem, plan, schedule).status == "valid"
    return simulate(problem, plan, schedule).total_ns


@pytest.mark.parametrize("length", EVEN)
@pytest.mark.parametrize("units", [1, 2, 3])
def test_published_bubble_where_a_backward_takes_a_forward(length: int, units: int) -> None:
    """(D - 2) / (2 N + D - 2) of the time is idle, for N a multiple of D by direct concatenation."""
    count = units * length
    total = total_ns(*mirrored(length, count, 10, 10))
    assert (total - count * 20) * (2 * count + length - 2) == (length - 2) * total


@pytest.mark.parametrize("length", EVEN)
def test_published_bubble_where_a_backward_takes_two_forwards(length: int) -> None:
    """(D - 2) / (3 N / 2 + D - 2) of the time is idle, for N = D."""
    problem, plan = mirrored(length, length, 10, 20)
    total = total_ns(problem, plan)
    assert (total - length * 30) * (3 * length + 2 * (length - 2)) == 2 * (length - 2) * total
    trace = simulate(problem, plan, chimera.schedule(problem, plan, Context(options=None)))
    bubble = (length - 2) / (3 * length / 2 + length - 2)
    assert metrics(problem, plan, trace).bubble == pytest.approx(bubble, abs=1e-12)


@pytest.mark.parametrize("length", EVEN)
@pytest.mark.parametrize("units", [2, 3])
def test_each_concatenated_unit_adds_a_bubble_where_a_backward_takes_two_forwards(length: int, units: int) -> None:
    """D - 2 forwards for each unit behind the first: what section 3.5 calls intermediate bubbles."""
    count = units * length
    assert total_ns(*mirrored(length, count, 10, 20)) == 10 * (3 * count + (units + 1) * (length - 2))


@pytest.mark.parametrize(("forward", "backward"), [(10, 10), (10, 20), (7, 10)])
@pytest.mark.parametrize("length", EVEN)
def test_critical_path_of_one_unit(length: int, forward: int, backward: int) -> None:
    """D forwards and 2 D - 2 backwards (section 3.4, with N = D)."""
    total = total_ns(*mirrored(length, length, forward, backward))
    assert total == length * forward + (2 * length - 2) * backward


@pytest.mark.parametrize("length", EVEN)
def test_live_micro_batches(length: int) -> None:
    """Between D / 2 + 1 and D micro-batches of one stage on each device (section 3.1, table 2)."""
    problem, plan = mirrored(length, length, 10, 20)
    schedule = chimera.schedule(problem, plan, Context(options=None))
    peaks = check_schedule(problem, plan, schedule).peak_bytes.values()
    assert length / 2 + 1 <= min(peaks) <= max(peaks) <= length


@pytest.mark.parametrize(("length", "count"), [(2, 6), (4, 2), (4, 6), (8, 2), (8, 20)])
def test_a_last_unit_with_fewer_micro_batches_is_valid(length: int, count: int) -> None:
    total_ns(*mirrored(length, count, 10, 20))


@pytest.mark.parametrize("length", EVEN)
def test_the_two_copies_of_a_stage_reduce_their_gradients(length: int) -> None:
    """Both devices of a pair come to the all-reduces that they share in one order, or each would wait for ever."""
    problem, plan = mirrored(length, 2 * length, 10, 20, weights=1000)
    schedule = chimera.schedule(problem, plan, Context(options=None))
    reduced = [
        [stage % length for stage, kind in zip(lane.stage, lane.kinds, strict=True) if kind == "R"]
        for lane in schedule.lanes
    ]
    assert all(lane.kinds.endswith("RR") for lane in schedule.lanes)
    assert reduced == [[max(k, length - 1 - k), min(k, length - 1 - k)] for k in range(length)]
    without = total_ns(*mirrored(length, 2 * length, 10, 20))
    assert total_ns(problem, plan) > without


def test_what_it_refuses() -> None:
    services = HostServices(Host())
    problem, plan = mirrored(4, 4, 10, 20)
    with pytest.raises(
        UnsupportedProblem, match=r"1f1b takes the placement apart; this plan has mirrored: 8 stages"
    ):
        services.schedule("1f1b", problem, plan)
    with pytest.raises(UnsupportedProblem, match="zb-v takes the placement v; this plan has mirrored"):
        services.schedule("zb-v", problem, plan)  # the same device sets as a V, and two pipelines
    with pytest.raises(UnsupportedProblem, match="even number of stages"):
        services.schedule("chimera", *mirrored(3, 4, 10, 20))
    with pytest.raises(UnsupportedProblem, match="chimera: stage 0 declares 1 samples in flight"):
        services.schedule("chimera", problem, plan.with_in_flight([1] * 8))
    with pytest.raises(UnsupportedProblem, match="chimera: deadlock"):
        services.schedule("chimera", problem, mirrored_plan([[stage] for stage in (3, 2, 1, 0)]))


def test_which_executors_take_it() -> None:
    """Two pipelines are simulated; real processes refuse them before they start."""
    services = HostServices(Host())
    problem, plan = mirrored(4, 4, 10, 20)
    schedule = services.schedule("chimera", problem, plan)
    assert services.execute("simulate", problem, plan, schedule).total_ns == 160
    with pytest.raises(UnsupportedProblem, match="torch takes the placement listed; this plan has mirrored"):
        services.execute("torch", problem, plan, schedule)
