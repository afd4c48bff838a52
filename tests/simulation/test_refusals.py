"""Deadlocks are named, and schedules that do not fit their plan are refused with the first thing wrong."""

import pytest

from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.simulation.simulate import simulate
from pipebench.simulation.tasks import Deadlock, InvalidSchedule
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.simulation.schedules import lanes


def one_f_one_b(live: int, count: int) -> str:
    """The lane of a stage that keeps so many micro-batches in flight."""
    last = max(0, count - live)
    then = [f"B{done} F{live + done}" for done in range(last)] + [f"B{done}" for done in range(last, count)]
    return " ".join([f"F{number}" for number in range(live)] + then)


def test_too_few_in_flight_before_a_join_deadlocks_and_is_named() -> None:
    """Notes, section 10: fork-join 0-1-2-4, 0-3-4 with (2, 3, 2, 2, 1)."""
    edges = [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)]
    problem = dag_problem([1] * 5, [2] * 5, [(a, (b,), 0) for a, b in edges], cluster(5), mini_batch=16)
    live = (2, 3, 2, 2, 1)
    plan = stages_plan([[stage] for stage in range(5)], in_flight=live)
    with pytest.raises(Deadlock) as caught:
        simulate(problem, plan, lanes(*(one_f_one_b(most, 16) for most in live)))
    assert caught.value.lanes == ((0,), (1,))
    assert caught.value.heads == (("B", 0, 0), ("F", 1, 2))
    assert "devices 0 stand at B of stage 0, micro-batch 0" in caught.value.message
    assert "wait for F of stage 0, micro-batch 2" in caught.value.message


@pytest.mark.parametrize(
    ("texts", "head"),
    [
        (("B0 F0 F1 B1", "F0 F1 B0 B1"), ("B", 0, 0)),
        (("F0 F1 W0 I0 B1", "F0 F1 B0 B1"), ("W", 0, 0)),
        (("F0 F1 B0 R0 B1", "F0 F1 B0 B1"), ("R", 0, 0)),
    ],
)
def test_a_lane_that_runs_a_task_before_its_input_waits_for_itself(texts: tuple[str, ...], head: object) -> None:
    problem = chain_problem([1, 1], [2, 2], cluster(2), mode="sync", mini_batch=2)
    with pytest.raises(Deadlock) as caught:
        simulate(problem, stages_plan([[0], [1]]), lanes(*texts))
    assert caught.value.lanes == ((0,),)
    assert caught.value.heads == (head,)


def test_crossed_orders_wait_for_each_other() -> None:
    problem = chain_problem([1, 1], [2, 2], cluster(2), mode="sync", mini_batch=2)
    with pytest.raises(Deadlock, match="devices 1 stand at F of stage 1, micro-batch 1"):
        simulate(problem, stages_plan([[0], [1]]), lanes("F0 B0 F1 B1", "F1 B1 F0 B0"))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("F0 F1 B0", "F0 F1 B0 B1"), r"needs B .* of stage 0, micro-batch 1"),
        (("F0 B0 B1", "F0 F1 B0 B1"), r"needs F of stage 0, micro-batch 1"),
        (("F0 F1 B0 B1", "F0 F1 I0 B1"), r"needs B \(or I with W\) of stage 1, micro-batch 0"),
        (("F0 F1 B0 B1", "F0 F1 B0 I0 B1"), r"either B or I with W, not both, of stage 1, micro-batch 0"),
        (("F0 F0 F1 B0 B1", "F0 F1 B0 B1"), r"F of stage 0, micro-batch 0 occurs twice"),
        (("F0 F1 F2 B0 B1", "F0 F1 B0 B1"), r"F of stage 0, micro-batch 2 names a micro-batch"),
        (("F0 F1 B0 B1",), r"needs F of stage 1, micro-batch 0"),
        (("F0 F1 B0 B1", "F0 F1 B0 B1", "F0"), r"F of stage 2, micro-batch 0 names a stage"),
    ],
)
def test_schedules_that_do_not_fit(texts: tuple[str, ...], message: str) -> None:
    problem = chain_problem([1, 1], [2, 2], cluster(3), mode="sync", mini_batch=2)
    with pytest.raises(InvalidSchedule, match=message):
        simulate(problem, stages_plan([[0], [1]]), lanes(*texts))


@pytest.mark.parametrize(
    ("stage", "micro_batch", "message"),
    [((10**40, 0), (0, 0), "names a stage that"), ((0, 0), (0, -(10**40)), "names a micro-batch that")],
)
def test_numbers_beyond_64_bits_are_refused(
    stage: tuple[int, ...], micro_batch: tuple[int, ...], message: str
) -> None:
    problem = chain_problem([1], [2], cluster(1), mode="sync", mini_batch=1)
    lane = Lane(devices=(0,), stage=stage, micro_batch=micro_batch, kinds="FB")
    with pytest.raises(InvalidSchedule, match=message):
        simulate(problem, stages_plan([[0]]), FiniteSchedule(lanes=(lane,)))


def test_a_stage_runs_on_its_own_devices_only() -> None:
    problem = chain_problem([1, 1], [2, 2], cluster(2), mode="sync", mini_batch=1)
    both = Lane(devices=(0,), stage=(0, 1, 1, 0), micro_batch=(0,) * 4, kinds="FFBB")
    with pytest.raises(InvalidSchedule, match="F of stage 1, micro-batch 0 is on a lane of other devices"):
        simulate(problem, stages_plan([[0], [1]]), FiniteSchedule(lanes=(both,)))
    double = (*lanes("F0 B0").lanes, *lanes("F0 B0").lanes)
    with pytest.raises(InvalidSchedule, match="same devices"):
        simulate(problem, stages_plan([[0], [1]]), FiniteSchedule(lanes=double))


def test_the_all_reduce_may_not_be_forgotten() -> None:
    problem = chain_problem([1], [2], cluster(2), weights=[10], mode="sync", mini_batch=2)
    plan = stages_plan([[0]], micro_batch=2, replicas=[2])
    lane = Lane(devices=(0, 1), stage=(0, 0), micro_batch=(0, 0), kinds="FB")
    with pytest.raises(InvalidSchedule, match="stage 0 has replicas and the schedule lacks its all-reduce"):
        simulate(problem, plan, FiniteSchedule(lanes=(lane,)))


def test_plans_that_cannot_be_simulated_say_why() -> None:
    problem = chain_problem([1, 1], [2, 2], cluster(3), mode="sync", mini_batch=3)
    with pytest.raises(InvalidValue, match="micro-batches of 2 samples do not divide 3"):
        simulate(problem, stages_plan([[0], [1]], micro_batch=2), lanes("F0 B0", "F0 B0"))
    plan = stages_plan([[0], [1]], replicas=[1, 2])
    overlapping = type(plan)(
        stages=(plan.stages[0], type(plan.stages[1])(operators=("op1",), devices=(0, 1), micro_batch=1))
    )
    with pytest.raises(PipebenchError, match="shares device 0"):
        simulate(problem, overlapping, lanes("F0 B0", "F0 B0"))
