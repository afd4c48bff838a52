"""Two pipelines in opposite directions: the bubble and the memory of Chimera, on schedules written by hand.

Source: Li and Hoefler 2021, Chimera (SC'21), section 3.
"""

import pytest
from msgspec.structs import replace

from pipebench.check import check_schedule, check_trace
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from pipebench.simulation.step_time import length_of
from tests.builders import chain_problem, cluster, mirrored_plan
from tests.check.orders import lane
from tests.simulation.schedules import gpipe_schedule

TWO = ("F0.0 F3.0 B3.0 B0.0", "F2.0 F1.0 B1.0 B2.0")
FOUR = (
    "F0.0 F0.1 F7.0 B7.0 F7.1 B7.1 B0.0 B0.1",
    "F1.0 F6.0 F1.1 F6.1 B6.0 B1.0 B6.1 B1.1",
    "F5.0 F2.0 F5.1 F2.1 B2.0 B5.0 B2.1 B5.1",
    "F4.0 F4.1 F3.0 B3.0 F3.1 B3.1 B4.0 B4.1",
)
"""Li and Hoefler, section 3.1: as many micro-batches as devices, half of them in each direction."""


def orders(lanes: tuple[str, ...]) -> FiniteSchedule:
    return FiniteSchedule(lanes=tuple(lane((device,), tasks) for device, tasks in enumerate(lanes)))


@pytest.mark.parametrize("lanes", [TWO, FOUR])
@pytest.mark.parametrize("backward", [1, 2])
def test_the_bubble_is_that_of_the_paper(lanes: tuple[str, ...], backward: int) -> None:
    """(D - 2) / (2 N + D - 2) where B = F, (D - 2) / (3 N / 2 + D - 2) where B = 2 F; N = D."""
    devices = count = len(lanes)
    forward = 10
    problem = chain_problem(
        [forward] * devices, [backward * forward] * devices, cluster(devices), mode="sync", mini_batch=count
    )
    plan = mirrored_plan([[stage] for stage in range(devices)])
    schedule = orders(lanes)
    assert check_schedule(problem, plan, schedule).status == "valid"
    trace = simulate(problem, plan, schedule)
    assert check_trace(problem, plan, schedule, trace).status == "valid"
    slots = 2 * count if backward == 1 else 3 * count / 2
    measured = metrics(problem, plan, trace)
    assert measured.bubble == pytest.approx((devices - 2) / (slots + devices - 2))
    assert measured.throughput == pytest.approx(count * 1e9 / trace.total_ns)


@pytest.mark.parametrize("lanes", [TWO, FOUR])
def test_each_device_holds_the_weights_and_activations_of_both_directions(lanes: tuple[str, ...]) -> None:
    """Weights of stage r and its opposite twice (with the gradients). With D = N = 4 devices 0 and 3 hold two
    micro-batches of their first stage and one of the other, devices 1 and 2 two of both.
    """
    devices = len(lanes)
    weights, saved = [3, 5, 11, 17][:devices], [100, 1000, 10000, 100000][:devices]
    problem = chain_problem(
        [1] * devices,
        [2] * devices,
        cluster(devices),
        weights=weights,
        saved=saved,
        mode="sync",
        mini_batch=devices,
    )
    plan = mirrored_plan([[stage] for stage in range(devices)])
    last = devices - 1
    reduces = [f"{tasks} R{r}.0 R{2 * devices - 1 - r}.0" for r, tasks in enumerate(lanes)]
    schedule = orders(tuple(reduces))
    live = {0: 2, last: 1} if devices == 4 else {0: 1, last: 1}
    expected = {}
    for device in range(devices):
        opposite = last - device
        if device in (0, last):
            activations = live[0] * saved[0] + live[last] * saved[last]
        else:
            activations = 2 * saved[device] + 2 * saved[opposite]
        expected[device] = 2 * (weights[device] + weights[opposite]) + activations
    verdict = check_schedule(problem, plan, schedule)
    assert verdict.peak_bytes == expected
    trace = simulate(problem, plan, schedule)
    assert metrics(problem, plan, trace).peak_memory_bytes == expected


def test_replicas_and_copies_of_both_directions_reduce_together() -> None:
    """Two copies of two directions with two replicas each: rings of eight devices at 1 byte/ns."""
    problem = chain_problem([4, 4], [8, 8], cluster(8), weights=[80, 160], mode="sync", mini_batch=8)
    plan = mirrored_plan([[0], [1]], micro_batch=2, replicas=2, copies=2)
    rings = (" R0.0 R3.0", " R1.0 R2.0")
    pairs = enumerate(zip(TWO, rings, strict=True))
    schedule = FiniteSchedule(
        lanes=tuple(lane((2 * row, 2 * row + 1), tasks + ring) for row, (tasks, ring) in pairs)
    )
    assert check_schedule(problem, plan, schedule).status == "valid"
    trace = simulate(problem, plan, schedule)
    assert check_trace(problem, plan, schedule, trace).status == "valid"
    assert trace.total_ns == 2 * (4 + 8) + 2 * 7 * 80 // 8 + 2 * 7 * 160 // 8
    measured = metrics(problem, plan, trace)
    assert sorted(measured.peak_memory_bytes) == list(range(8))
    assert measured.throughput == pytest.approx(8e9 / trace.total_ns)


@pytest.mark.parametrize(("overlap", "total"), [(0.0, 40), (0.5, 35), (1.0, 30)])
def test_a_device_counts_once_as_busy_while_it_runs_a_pair(overlap: float, total: int) -> None:
    """Two micro-batches in each direction; each device runs one F and one B of its first stage at once."""
    problem = replace(chain_problem([10, 0], [10, 0], cluster(2), mode="sync", mini_batch=4), overlap=overlap)
    plan = mirrored_plan([[0], [1]])
    first = "F0.0 F3.0 B3.0 F0.1 +B0.0 F3.1 B3.1 B0.1"
    second = "F2.0 F1.0 B1.0 F2.1 +B2.0 F1.1 B1.1 B2.1"
    schedule = orders((first, second))
    assert check_schedule(problem, plan, schedule).status == "valid"
    trace = simulate(problem, plan, schedule)
    assert check_trace(problem, plan, schedule, trace).status == "valid"
    measured = metrics(problem, plan, trace)
    assert trace.total_ns == total
    assert measured.bubble == 0.0


def test_two_pipelines_without_a_flush_are_refused() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(2), mode="async", mini_batch=2)
    with pytest.raises(UnsupportedProblem, match="2 pipelines"):
        simulate(problem, mirrored_plan([[0], [1]]), orders(TWO))
    with pytest.raises(UnsupportedProblem, match="2 pipelines"):
        length_of(problem, mirrored_plan([[0], [1]]), orders(TWO))


def test_a_scheduler_of_one_stage_a_device_refuses_mirrored_plans() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(2), mode="sync", mini_batch=2)
    with pytest.raises(UnsupportedProblem, match="share"):
        gpipe_schedule(problem, mirrored_plan([[0], [1]]))
