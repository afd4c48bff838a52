"""Seconds, throughput and bubble of traces whose figures are known."""

import msgspec
import pytest

from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.schedules import gpipe_schedule, one_f_one_b_schedule


@pytest.mark.parametrize(("stages", "count"), [(1, 4), (4, 8), (8, 128)])
def test_the_bubble_of_equal_stages(stages: int, count: int) -> None:
    """(S - 1) / (m + S - 1), GPipe section 2.3."""
    problem = chain_problem([1] * stages, [2] * stages, cluster(stages), mode="sync", mini_batch=count)
    plan = stages_plan([[stage] for stage in range(stages)])
    for schedule in (gpipe_schedule(problem, plan), one_f_one_b_schedule(problem, plan)):
        measured = metrics(problem, plan, simulate(problem, plan, schedule))
        assert measured.bubble == pytest.approx((stages - 1) / (count + stages - 1))
        assert measured.seconds == pytest.approx(3 * (count + stages - 1) / 1e9)
        assert measured.throughput == pytest.approx(count / measured.seconds)


def test_a_lane_of_more_devices_weighs_more() -> None:
    """Stage 0 on two devices works 4 x 3 of 39 ns, stage 1 on one device 4 x 6."""
    problem = chain_problem([1, 1], [2, 2], cluster(3), mode="sync", mini_batch=8)
    plan = stages_plan([[0], [1]], micro_batch=2, replicas=[2, 1])
    trace = simulate(problem, plan, gpipe_schedule(problem, plan))
    measured = metrics(problem, plan, trace)
    assert measured.bubble == pytest.approx(1 - (2 * 12 + 24) / (3 * trace.total_ns))


def test_copies_compute_the_whole_mini_batch_between_them() -> None:
    problem = chain_problem([1, 1], [2, 2], cluster(4), mode="sync", mini_batch=8)
    plan = msgspec.structs.replace(stages_plan([[0], [1]]), copies=2)
    measured = metrics(problem, plan, simulate(problem, plan, gpipe_schedule(problem, plan)))
    assert measured.seconds == pytest.approx(15e-9)
    assert measured.throughput == pytest.approx(8 / 15e-9)


def test_work_that_takes_no_time_has_no_throughput() -> None:
    problem = chain_problem([0], [0], cluster(1), mode="sync", mini_batch=2)
    plan = stages_plan([[0]])
    measured = metrics(problem, plan, simulate(problem, plan, gpipe_schedule(problem, plan)))
    assert (measured.seconds, measured.throughput, measured.bubble) == (0.0, 0.0, 0.0)
