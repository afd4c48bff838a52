"""check_schedule on finite schedules: valid orders, and one mutation for each rule."""

from collections.abc import Sequence

import msgspec
import pytest

from pipebench.check import check_schedule
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.domain.verdict import Witness
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.check.orders import finite, gpipe, lane, one_f_one_b

CHAIN = chain_problem([1] * 3, [2] * 3, cluster(3), mode="sync", mini_batch=4)
THREE = stages_plan([[0], [1], [2]])
ORDERS = [one_f_one_b(4, 3), one_f_one_b(4, 2), one_f_one_b(4, 1)]


def broken(problem: Problem, plan: Plan, schedule: FiniteSchedule) -> Witness:
    verdict = check_schedule(problem, plan, schedule)
    assert verdict.status == "invalid"
    assert verdict.witness is not None
    return verdict.witness


def replaced(orders: Sequence[str], position: int, order: str) -> FiniteSchedule:
    return finite(THREE, [*orders[:position], order, *orders[position + 1 :]])


def test_hand_written_orders_are_valid() -> None:
    assert check_schedule(CHAIN, THREE, finite(THREE, ORDERS)).status == "valid"
    assert check_schedule(CHAIN, THREE, finite(THREE, [gpipe(4)] * 3)).status == "valid"
    split = "F0 F1 I0 F2 I1 W0 F3 I2 I3 W1 W2 W3"
    assert check_schedule(CHAIN, THREE, replaced(ORDERS, 1, split)).status == "valid"


def test_the_plan_is_judged_first() -> None:
    plan = stages_plan([[0, 2], [1]])
    assert broken(CHAIN, plan, finite(plan, [gpipe(4)] * 2)).rule == "C1"


@pytest.mark.parametrize(
    ("order", "rule", "micro_batch"),
    [
        ("F0 F1 F2 B0 F3 B1 B2", "coverage", 3),
        ("F0 F1 F1 B0 F2 B1 F3 B2 B3", "coverage", 1),
        ("F0 F1 B0 F2 B1 F3 I2 B3", "coverage", 2),
        ("F0 F1 B0 F2 B1 F3 B2 W2 B3", "coverage", 2),
        ("F0 F1 B0 F2 B1 F3 B2 B4", "shape", 4),
        ("F0 B1 F1 B0 F2 F3 B2 B3", "C4", 1),
        ("F0 F1 F2 F3 W0 I0 B1 B2 B3", "C4", 0),
    ],
)
def test_every_task_once_and_in_an_order_that_its_own_stage_allows(
    order: str, rule: str, micro_batch: int
) -> None:
    witness = broken(CHAIN, THREE, replaced([gpipe(4)] * 3, 1, order))
    assert (witness.rule, witness.stage, witness.micro_batch) == (rule, 1, micro_batch)


def test_numbers_beyond_reason_are_a_verdict_not_a_crash() -> None:
    lanes = finite(THREE, ORDERS).lanes
    for column in ("stage", "micro_batch"):
        huge = msgspec.structs.replace(lanes[0], **{column: (10**40, *getattr(lanes[0], column)[1:])})
        assert broken(CHAIN, THREE, FiniteSchedule(lanes=(huge, *lanes[1:]))).rule == "shape"
    many = msgspec.structs.replace(CHAIN, mini_batch=2**31)
    witness = broken(many, THREE, finite(THREE, ORDERS))
    assert (witness.rule, witness.stage) == ("coverage", 0)


def test_a_lane_holds_the_stages_of_its_devices_and_shares_none() -> None:
    lanes = finite(THREE, ORDERS).lanes
    moved = msgspec.structs.replace(lanes[1], devices=(0,))
    witness = broken(CHAIN, THREE, FiniteSchedule(lanes=(lanes[0], moved, lanes[2])))
    assert (witness.rule, witness.device) == ("shape", 0)
    other = msgspec.structs.replace(lanes[1], devices=(7,))
    witness = broken(CHAIN, THREE, FiniteSchedule(lanes=(lanes[0], other, lanes[2])))
    assert (witness.rule, witness.stage) == ("shape", 1)
    assert broken(CHAIN, THREE, FiniteSchedule(lanes=lanes[:2])).rule == "coverage"
    assert broken(CHAIN, THREE, FiniteSchedule(lanes=(*lanes, lane((9,), "F3.0")))).rule == "shape"


def test_two_lanes_that_wait_for_each_other_are_named() -> None:
    # Stage 0 wants the gradient of 0 before it sends 1, stage 1 wants 1 before it returns 0.
    orders = ["F0 B0 F1 B1 F2 B2 F3 B3", "F0 F1 B0 B1 F2 B2 F3 B3", one_f_one_b(4, 1)]
    witness = broken(CHAIN, THREE, finite(THREE, orders))
    assert witness.rule == "C4"
    assert witness.message == (
        "deadlock: B of stage 0, micro-batch 0 waits for B of stage 1, micro-batch 0, which stands behind "
        "F of stage 1, micro-batch 1; F of stage 1, micro-batch 1 waits for F of stage 0, micro-batch 1, which "
        "stands behind B of stage 0, micro-batch 0"
    )


def test_too_few_in_flight_on_one_branch_of_a_fork_and_join_deadlock() -> None:
    """GraphPipe notes, section 10: stages 0-1-2-4 and 0-3-4 with warm-ups (2, 3, 2, 2, 1)."""
    fork = [(0, (1, 3), 0), (1, (2,), 0), (2, (4,), 0), (3, (4,), 0)]
    problem = dag_problem([1] * 5, [1] * 5, fork, cluster(5), mini_batch=8)
    plan = stages_plan([[i] for i in range(5)])
    ample = finite(plan, [one_f_one_b(8, w) for w in (4, 3, 2, 2, 1)])
    assert check_schedule(problem, plan, ample).status == "valid"
    deeper = finite(plan, [one_f_one_b(8, w) for w in (4, 3, 2, 4, 1)])
    assert check_schedule(problem, plan, deeper).status == "valid"
    witness = broken(problem, plan, finite(plan, [one_f_one_b(8, w) for w in (2, 3, 2, 2, 1)]))
    assert (witness.rule, witness.message.split(":")[0]) == ("C4", "deadlock")


def test_a_deadlock_names_only_what_has_not_run() -> None:
    """Stage 2 joins 0 and 1. Its F1 waits for stage 1 alone: stage 0 has sent both of its micro-batches."""
    problem = dag_problem([1] * 3, [1] * 3, [(0, (2,), 0), (1, (2,), 0)], cluster(3), mini_batch=2)
    plan = stages_plan([[0], [1], [2]])
    witness = broken(problem, plan, finite(plan, [gpipe(2), "F0 B0 F1 B1", gpipe(2)]))
    assert (witness.rule, witness.stage) == ("C4", 1)
    assert "stage 0" not in witness.message


def test_stages_with_other_micro_batches_wait_for_the_samples_they_need() -> None:
    """Figure 5 of GraphPipe: micro-batches 1, 2, 4 downstream need 10, 8, 4 samples in flight."""
    problem = chain_problem([1] * 3, [1] * 3, cluster(3), mode="sync", mini_batch=16)
    sizes = (1, 2, 4)
    stages = stages_plan([[0], [1], [2]]).stages
    plan = Plan(
        stages=tuple(msgspec.structs.replace(s, micro_batch=b) for s, b in zip(stages, sizes, strict=True))
    )

    def order(in_flight: tuple[int, ...]) -> FiniteSchedule:
        warm_ups = zip(in_flight, sizes, strict=True)
        return finite(plan, [one_f_one_b(16 // b, s // b) for s, b in warm_ups])

    assert check_schedule(problem, plan, order((10, 8, 4))).status == "valid"
    # Micro-batch 0 of stage 2 covers micro-batches 0 and 1 of stage 1: three samples are not enough.
    witness = broken(problem, plan, order((10, 2, 4)))
    assert witness.rule == "C4"
    assert "waits for" in witness.message


def test_order_edges_are_obeyed_forwards_and_backwards() -> None:
    problem = dag_problem([1, 1], [1, 1], [], cluster(2), mini_batch=2)
    plan = stages_plan([[0], [1]])
    chained = stages_plan([[0], [1]], order_edges=[(0, 1)])
    orders = ["F0 B0 F1 B1", "F0 F1 B0 B1"]
    assert check_schedule(problem, plan, finite(plan, orders)).status == "valid"
    assert broken(problem, chained, finite(chained, orders)).rule == "C4"
    assert check_schedule(problem, chained, finite(chained, orders[::-1])).status == "valid"


def test_an_all_reduce_where_and_only_where_it_takes_time() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(3), weights=[4, 0], mode="sync", mini_batch=4)
    plan = stages_plan([[0], [1]], micro_batch=2, replicas=[2, 1])
    valid = ["F0 F1 B0 B1 R0", "F0 B0 F1 B1"]
    assert check_schedule(problem, plan, finite(plan, valid)).status == "valid"
    assert check_schedule(problem, plan, finite(plan, [valid[0], valid[1] + " R0"])).status == "valid"
    for order, rule in (
        ("F0 F1 B0 B1", "coverage"),
        ("F0 F1 B0 B1 R0 R0", "coverage"),
        ("F0 F1 B0 B1 R1", "shape"),
        ("F0 F1 B0 R0 B1", "C4"),
        ("F0 F1 I0 B1 R0 W0", "C4"),
    ):
        witness = broken(problem, plan, finite(plan, [order, valid[1]]))
        assert (witness.rule, witness.stage) == (rule, 0), order
    # In async the all-reduce is part of the backward.
    running = msgspec.structs.replace(problem, regime=msgspec.structs.replace(problem.regime, mode="async"))
    assert check_schedule(running, plan, finite(plan, ["F0 F1 B0 B1", valid[1]])).status == "valid"


def test_copies_of_the_pipeline_reduce_too() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(4), weights=[4, 0], mode="sync", mini_batch=4)
    plan = msgspec.structs.replace(stages_plan([[0], [1]], micro_batch=2), copies=2)
    assert broken(problem, plan, finite(plan, ["F0 B0", "F0 B0"])).rule == "coverage"
    verdict = check_schedule(problem, plan, finite(plan, ["F0 B0 R0", "F0 B0"]))
    assert verdict.status == "valid"
    assert set(verdict.peak_bytes) == {0, 1, 2, 3}


def test_stages_on_one_lane_must_run_in_an_order_that_moves() -> None:
    problem = chain_problem([1] * 2, [1] * 2, cluster(1), mode="sync")
    stages = stages_plan([[0], [1]]).stages
    plan = Plan(stages=(stages[0], msgspec.structs.replace(stages[1], devices=(0,))), placement="listed")
    good = FiniteSchedule(lanes=(lane((0,), "F0.0 F1.0 B1.0 B0.0"),))
    assert check_schedule(problem, plan, good).status == "valid"
    stuck = FiniteSchedule(lanes=(lane((0,), "F0.0 F1.0 B0.0 B1.0"),))
    witness = broken(problem, plan, stuck)
    assert witness.rule == "C4"
    assert "B of stage 0, micro-batch 0 waits for B of stage 1, micro-batch 0" in witness.message
