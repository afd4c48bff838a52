"""The orders that gpipe and 1f1b make, and what they refuse."""

import msgspec
import pytest

from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import FiniteSchedule
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.simulation.schedules import gpipe_schedule, one_f_one_b_schedule


def texts(schedule: FiniteSchedule) -> list[str]:
    return [
        " ".join(f"{kind}{number}" for kind, number in zip(lane.kinds, lane.micro_batch, strict=True))
        for lane in schedule.lanes
    ]


def chain(stages: int, mini_batch: int, mode: str = "sync", weights: int = 0) -> tuple[object, Plan]:
    problem = chain_problem(
        [1] * stages,
        [2] * stages,
        cluster(4 * stages),
        weights=[weights] * stages,
        mode=mode,
        mini_batch=mini_batch,
    )
    return problem, stages_plan([[stage] for stage in range(stages)])


def test_gpipe() -> None:
    problem, plan = chain(2, 3)
    assert texts(gpipe_schedule(problem, plan)) == ["F0 F1 F2 B2 B1 B0"] * 2


def test_1f1b() -> None:
    problem, plan = chain(3, 5)
    assert texts(one_f_one_b_schedule(problem, plan)) == [
        "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4",
        "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4",
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4",
    ]
    assert texts(one_f_one_b_schedule(problem, plan, "+2"))[1:] == [
        "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4",
        "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4",
    ]


def test_fewer_micro_batches_than_stages() -> None:
    problem, plan = chain(4, 2)
    assert texts(one_f_one_b_schedule(problem, plan))[0] == "F0 F1 B0 B1"


def test_kfkb() -> None:
    problem, plan = chain(2, 5)
    plan = msgspec.structs.replace(
        plan, stages=tuple(msgspec.structs.replace(stage, k=2) for stage in plan.stages)
    )
    assert texts(one_f_one_b_schedule(problem, plan)) == [
        "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4",
        "F0 F1 B0 B1 F2 F3 B2 F4 B3 B4",
    ]


def test_a_run_is_no_longer_than_what_is_in_flight() -> None:
    problem, _ = chain(1, 3)
    plan = stages_plan([[0]], in_flight=[1])
    plan = msgspec.structs.replace(plan, stages=(msgspec.structs.replace(plan.stages[0], k=2),))
    assert texts(one_f_one_b_schedule(problem, plan)) == ["F0 B0 F1 B1 F2 B2"]


def test_the_plan_decides_what_is_in_flight() -> None:
    problem, _ = chain(2, 4)
    plan = stages_plan([[0], [1]], in_flight=[3, 1])
    assert texts(one_f_one_b_schedule(problem, plan))[0] == "F0 F1 F2 B0 F3 B1 B2 B3"
    plan = stages_plan([[0], [1]], micro_batch=2, in_flight=[2, 2])
    assert texts(one_f_one_b_schedule(problem, plan))[0] == "F0 B0 F1 B1"
    plan = stages_plan([[0], [1]], in_flight=[9, 1])
    assert texts(one_f_one_b_schedule(problem, plan))[0] == "F0 F1 F2 F3 B0 B1 B2 B3"


def test_where_a_stage_declares_fewer_in_flight_than_gpipe_keeps_it_is_refused() -> None:
    problem, _ = chain(2, 4)
    assert texts(gpipe_schedule(problem, stages_plan([[0], [1]], in_flight=[4, 0])))[0].startswith(
        "F0 F1 F2 F3 B3"
    )
    with pytest.raises(UnsupportedProblem, match="gpipe: stage 1 declares 3 samples in flight"):
        gpipe_schedule(problem, stages_plan([[0], [1]], in_flight=[4, 3]))


def test_order_edges_count_as_hops() -> None:
    problem = dag_problem([1] * 2, [2] * 2, [], cluster(2), mini_batch=4)
    assert texts(one_f_one_b_schedule(problem, stages_plan([[0], [1]])))[0].startswith("F0 B0")
    ordered = stages_plan([[0], [1]], order_edges=[(0, 1)])
    assert texts(one_f_one_b_schedule(problem, ordered))[0].startswith("F0 F1 B0")


@pytest.mark.parametrize(
    ("replicas", "copies", "weights", "mode", "reduces"),
    [
        (2, 1, 5, "sync", True),
        (1, 2, 5, "sync", True),
        (1, 1, 5, "sync", False),
        (2, 1, 0, "sync", False),
        (2, 1, 5, "async", False),
    ],
)
def test_the_all_reduce_ends_a_lane(replicas: int, copies: int, weights: int, mode: str, reduces: bool) -> None:
    problem, _ = chain(2, 8, mode, weights)
    plan = stages_plan([[0], [1]], micro_batch=2, replicas=[replicas] * 2)
    plan = msgspec.structs.replace(plan, copies=copies)
    for schedule in (gpipe_schedule(problem, plan), one_f_one_b_schedule(problem, plan)):
        assert [text.endswith(" R0") for text in texts(schedule)] == [reduces] * 2
        assert schedule.lanes[0].kinds.count("F") == 4 // copies
        simulate(problem, plan, schedule)


def test_stages_that_share_devices_are_refused() -> None:
    problem, plan = chain(2, 4)
    stages = (plan.stages[0], msgspec.structs.replace(plan.stages[1], devices=(0,)))
    shared = Plan(stages=stages, placement="listed")
    with pytest.raises(UnsupportedProblem, match=r"gpipe has no order .* stages 0 and 1 share \[0\]"):
        gpipe_schedule(problem, shared)
    with pytest.raises(UnsupportedProblem, match="1f1b has no order"):
        one_f_one_b_schedule(problem, shared)


def test_micro_batches_that_do_not_divide_are_refused() -> None:
    problem, _ = chain(2, 6)
    with pytest.raises(InvalidValue, match="micro-batches of 4 samples"):
        gpipe_schedule(problem, stages_plan([[0], [1]], micro_batch=4))
