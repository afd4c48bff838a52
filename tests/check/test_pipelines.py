"""Plans of several pipelines: one mutation for each rule, and R that waits for all of them."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from pipebench.check import check_pins, check_plan, check_schedule, check_trace
from pipebench.domain.cluster import DeviceType
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.domain.verdict import Witness
from pipebench.simulation.simulate import simulate
from pipebench.simulation.tasks import Deadlock
from tests.builders import chain_problem, cluster, mirrored_plan, stages_plan
from tests.check.orders import lane

FOUR = chain_problem([1] * 4, [2] * 4, cluster(8), weights=[8] * 4, mode="sync", mini_batch=8)
MIRRORED = mirrored_plan([[0], [1], [2], [3]])
TWO = chain_problem([1] * 2, [2] * 2, cluster(2), weights=[8] * 2, mode="sync", mini_batch=2)
PAIR = mirrored_plan([[0], [1]])
"""Stages 0 and 1 down devices 0 and 1, stages 2 and 3 down devices 1 and 0."""


def changed(plan: Plan, position: int, **fields: object) -> Plan:
    stages = list(plan.stages)
    stages[position] = replace(stages[position], **fields)
    return replace(plan, stages=tuple(stages))


def broken(problem: Problem, plan: Plan) -> Witness:
    verdict = check_plan(problem, plan)
    assert verdict.status == "invalid"
    assert verdict.witness is not None
    return verdict.witness


def orders(*lanes: str) -> FiniteSchedule:
    return FiniteSchedule(lanes=tuple(lane((device,), tasks) for device, tasks in enumerate(lanes)))


def test_mirrored_plans_are_valid() -> None:
    assert check_plan(FOUR, MIRRORED).status == "valid"
    assert check_plan(FOUR, replace(MIRRORED, placement="listed")).status == "valid"
    assert check_plan(FOUR, mirrored_plan([[0], [1], [2], [3]], replicas=2, micro_batch=2)).status == "valid"
    assert check_plan(FOUR, mirrored_plan([[0, 1], [2, 3]], copies=4)).status == "valid"
    assert check_plan(FOUR, replace(MIRRORED, routing="relay", order_edges=((0, 2), (4, 6)))).status == "valid"


@pytest.mark.parametrize(
    ("change", "rule", "said"),
    [
        (lambda plan: changed(plan, 5, operators=("op2",)), "coverage", "stages 1 and 5 stand at one position"),
        (lambda plan: changed(plan, 6, micro_batch=2), "shape", "differ in micro_batch: 1 and 2"),
        (lambda plan: changed(plan, 4, recompute="stage"), "shape", "differ in recompute: none and stage"),
        (lambda plan: replace(plan, placement="v"), "C3", "'v' is of one pipeline, the plan has 2"),
        (lambda plan: replace(plan, pipelines=4), "coverage", "differ in operators"),
        (
            lambda plan: changed(plan, 6, devices=(5,)),
            "C3",
            "two stages on each device set, there are 8 stages on 5",
        ),
        (lambda plan: replace(plan, placement="apart"), "C3", "the plan does not declare it"),
        (lambda plan: replace(plan, copies=3), "shape", "2 pipelines in each of 3 copies do not divide"),
        (lambda plan: replace(plan, copies=4), "shape", "4 copies need 16 devices"),
        (lambda plan: replace(plan, order_edges=((5, 4),)), "C2", "4 -> 5 -order-> 4"),
    ],
)
def test_each_mutation_names_its_rule(change: Callable[[Plan], Plan], rule: str, said: str) -> None:
    witness = broken(FOUR, change(MIRRORED))
    assert witness.rule == rule
    assert said in witness.message


def test_stages_stand_where_the_placement_says() -> None:
    swapped = changed(changed(MIRRORED, 4, devices=(2,)), 5, devices=(3,))
    witness = broken(FOUR, swapped)
    assert (witness.rule, witness.stage) == ("C3", 4)
    assert "puts stage 4 on set 3 (devices (3,)), it is on set 2" in witness.message
    assert check_plan(FOUR, replace(swapped, placement="listed")).status == "valid"
    in_turn = stages_plan([[0], [1], [2], [3]])
    in_turn = replace(changed(changed(in_turn, 2, devices=(0,)), 3, devices=(1,)), placement="in-turn")
    assert check_plan(FOUR, in_turn).status == "valid"
    assert broken(FOUR, replace(in_turn, placement="v")).stage == 2
    assert broken(FOUR, replace(in_turn, placement="apart")).rule == "C3"


def test_weights_do_not_stand_twice_on_one_device() -> None:
    """Of three stages there and back the middle one would meet itself."""
    three = chain_problem([1] * 3, [2] * 3, cluster(3), mode="sync", mini_batch=2)
    witness = broken(three, mirrored_plan([[0], [1], [2]]))
    assert (witness.rule, witness.device) == ("C3", 1)
    assert "stages 1 and 4 hold the same operators in two pipelines" in witness.message


def test_pipelines_on_devices_of_their_own_are_copies() -> None:
    apart = stages_plan([[0, 1], [2, 3], [0, 1], [2, 3]])
    witness = broken(FOUR, replace(apart, placement="listed", pipelines=2))
    assert (witness.rule, witness.stage) == ("C3", 2)
    assert "where pipeline 0 has no stage: pipelines on devices of their own are copies" in witness.message


def test_a_bad_operator_is_named_whichever_pipeline_has_it() -> None:
    wrong = changed(changed(MIRRORED, 1, operators=("op1", "op2")), 5, operators=("op1", "op2"))
    assert "operator 'op2' is in stages 1 and 2" in broken(FOUR, wrong).message
    cut = mirrored_plan([[0, 2], [1], [3], []])
    assert broken(FOUR, cut).message == "stage 3 holds no operator"
    assert broken(FOUR, mirrored_plan([[0, 2], [1, 3]])).rule == "C1"


def test_what_cannot_be_priced_is_unknown() -> None:
    waits = check_plan(replace(FOUR, regime=replace(FOUR.regime, mode="async")), MIRRORED)
    assert (waits.status, "2 pipelines" in waits.reason) == ("unknown", True)
    on = FOUR.cluster
    other = replace(
        on, types=(*on.types, DeviceType(name="other", memory_bytes=1)), devices=("gpu",) * 3 + ("other",) * 5
    )
    profile = replace(
        FOUR.profile, costs=(*FOUR.profile.costs, replace(FOUR.profile.costs[0], device_type="other"))
    )
    mixed = check_plan(replace(FOUR, cluster=other, profile=profile), MIRRORED)
    assert (mixed.status, "several types" in mixed.reason) == ("unknown", True)


@pytest.mark.parametrize(
    ("pins", "status"),
    [
        (Pins(data_parallel=4), "valid"),
        (Pins(data_parallel=2), "invalid"),
        (Pins(pipeline=2, virtual_stages=1), "valid"),
        (Pins(pipeline=4), "invalid"),
        (Pins(virtual_stages=2), "invalid"),
    ],
)
def test_pins(pins: Pins, status: str) -> None:
    """Two pipelines in two copies are four replicas, each on two device sets."""
    assert check_pins(replace(FOUR, pins=pins), mirrored_plan([[0, 1], [2, 3]], copies=2)).status == status


GOOD = ("F0.0 F3.0 B3.0 B0.0 R3.0 R0.0", "F2.0 F1.0 B1.0 B2.0 R1.0 R2.0")


def test_each_pipeline_reduces() -> None:
    assert check_schedule(TWO, PAIR, orders(*GOOD)).status == "valid"
    for stage in range(4):
        lanes = [tasks.replace(f"R{stage}.0", "") for tasks in GOOD]
        verdict = check_schedule(TWO, PAIR, orders(*lanes))
        assert verdict.witness is not None
        assert verdict.witness.message == f"stage {stage} has 0 R, it needs one"


def test_r_waits_for_the_last_backward_of_every_pipeline() -> None:
    """R0 waits for B2 of the other lane, which stands behind R1, which waits for B3 behind R0."""
    schedule = orders("F0.0 F3.0 B0.0 R0.0 B3.0 R3.0", "F2.0 F1.0 B1.0 R1.0 B2.0 R2.0")
    witness = check_schedule(TWO, PAIR, schedule).witness
    assert witness is not None
    assert witness.rule == "C4"
    assert witness.message == (
        "deadlock: R of stage 0 waits for B of stage 2, micro-batch 0, which stands behind R of stage 1; "
        "R of stage 1 waits for B of stage 3, micro-batch 0, which stands behind R of stage 0"
    )
    with pytest.raises(Deadlock, match="stand at R of stage 0 and wait for B of stage 2, micro-batch 0"):
        simulate(TWO, PAIR, schedule)


def test_r_starts_when_the_backwards_of_both_lanes_have_ended() -> None:
    """Lane 0 has run B of stage 3 at 44 ns; its R needs the last B of stage 1 too, which lane 1 ends at 46."""
    problem = chain_problem([1] * 2, [2, 20], cluster(2), weights=[8] * 2, mode="sync", mini_batch=4)
    schedule = orders(
        "F0.0 F0.1 F3.0 B3.0 F3.1 B3.1 R3.0 B0.0 B0.1 R0.0",
        "F2.0 F2.1 F1.0 B1.0 B2.0 F1.1 B1.1 B2.1 R1.0 R2.0",
    )
    trace = simulate(problem, PAIR, schedule)
    assert check_trace(problem, PAIR, schedule, trace).status == "valid"
    row = list(zip(trace.kinds, trace.stage, strict=True)).index(("R", 3))
    assert (trace.end_ns[row - 1], trace.start_ns[row], trace.end_ns[row]) == (44, 46, 46 + 8)

    def earlier(column: tuple[int, ...]) -> tuple[int, ...]:
        return (*column[:row], column[row] - 1, *column[row + 1 :])

    early = replace(trace, start_ns=earlier(trace.start_ns), end_ns=earlier(trace.end_ns))
    witness = check_trace(problem, PAIR, schedule, early).witness
    assert witness is not None
    assert (witness.rule, witness.message) == (
        "dependency",
        "R of stage 3 starts at 45 ns, B of stage 1, micro-batch 1, which it needs, ends at 46 ns",
    )
