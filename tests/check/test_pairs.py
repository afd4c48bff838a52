"""Pairs of tasks in a lane: deadlock, memory, what is in flight, and the times of a trace."""

import pytest
from msgspec.structs import replace

from pipebench.check import check_schedule, check_trace
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.domain.trace import Trace
from pipebench.simulation.simulate import simulate
from pipebench.simulation.tasks import Deadlock
from tests.builders import chain_problem, cluster, stages_plan
from tests.check.orders import lane

ONE = chain_problem([4], [6], cluster(1), saved=[100], weights=[7], mode="sync", mini_batch=3)
ALONE = stages_plan([[0]])
TWO = chain_problem([4, 4], [6, 6], cluster(2), mode="sync", mini_batch=3)
ROW = stages_plan([[0], [1]])


def finite_pairs(*orders: str) -> FiniteSchedule:
    lanes = []
    for device, order in enumerate(orders):
        words = (f"+{w[1]}{device}.{w[2:]}" if w[0] == "+" else f"{w[0]}{device}.{w[1:]}" for w in order.split())
        lanes.append(lane((device,), " ".join(words)))
    return FiniteSchedule(lanes=tuple(lanes))


PAIRED = finite_pairs("F0 F1 +B0 F2 +B1 B2")


def with_workspace(problem: Problem, workspace: int) -> Problem:
    (costs,) = problem.profile.costs
    operators = tuple(replace(each, workspace_bytes=workspace) for each in costs.operators)
    return replace(problem, profile=replace(problem.profile, costs=(replace(costs, operators=operators),)))


@pytest.mark.parametrize(("overlap", "hidden"), [(0.0, 0), (0.5, 2), (1.0, 4)])
def test_a_pair_takes_what_the_problem_says(overlap: float, hidden: int) -> None:
    problem = replace(ONE, overlap=overlap)
    assert check_schedule(problem, ALONE, PAIRED).status == "valid"
    trace = simulate(problem, ALONE, PAIRED)
    assert trace.total_ns == 3 * (4 + 6) - 2 * hidden
    assert trace.start_ns == (0, 4, 4, 14 - hidden, 14 - hidden, 24 - 2 * hidden)
    assert check_trace(problem, ALONE, PAIRED, trace).status == "valid"


def test_both_tasks_of_a_pair_hold_their_memory_at_once() -> None:
    """Two live micro-batches and two workspaces, where one after the other B0 then F1 would hold one of each."""
    problem = with_workspace(ONE, 10)
    state = 2 * 7
    for order, peak in (
        ("F0 B0 F1 B1 F2 B2", state + 100 + 10),
        ("F0 F1 B0 F2 B1 B2", state + 200 + 10),
        ("F0 F1 +B0 F2 +B1 B2", state + 200 + 20),
    ):
        schedule = finite_pairs(order)
        assert check_schedule(problem, ALONE, schedule).peak_bytes == {0: peak}
        trace = simulate(replace(problem, overlap=0.5), ALONE, schedule)
        assert trace.memory[0].peak_bytes == peak
    small = replace(problem, cluster=cluster(1, state + 200 + 19))
    witness = check_schedule(small, ALONE, PAIRED).witness
    assert witness is not None
    assert (witness.rule, witness.bytes_over) == ("memory", 1)
    assert "during F of stage 0, micro-batch 1" in witness.message


def test_a_pair_counts_its_forward_in_flight_beside_its_backward() -> None:
    declared = replace(ALONE, stages=(replace(ALONE.stages[0], in_flight=1),))
    assert check_schedule(ONE, declared, finite_pairs("F0 B0 F1 B1 F2 B2")).status == "valid"
    witness = check_schedule(ONE, declared, PAIRED).witness
    assert witness is not None
    assert "declares 1 samples in flight, its schedule keeps 2" in witness.message


def test_a_pair_waits_for_the_inputs_of_both() -> None:
    """Stage 0 pairs F1 with B0: fine while stage 1 can run B0 first, a deadlock when it pairs B0 with F1."""
    good = finite_pairs("F0 F1 F2 +B0 B1 B2", "F0 F1 +B0 F2 +B1 B2")
    assert check_schedule(TWO, ROW, good).status == "valid"
    assert check_trace(TWO, ROW, good, simulate(TWO, ROW, good)).status == "valid"
    bad = finite_pairs("F0 F1 +B0 F2 +B1 B2", "F0 F1 +B0 F2 +B1 B2")
    witness = check_schedule(TWO, ROW, bad).witness
    assert witness is not None
    assert (witness.rule, witness.message) == (
        "C4",
        "deadlock: B of stage 0, micro-batch 0 waits for B of stage 1, micro-batch 0, "
        "which runs at the same time as F of stage 1, micro-batch 1; "
        "F of stage 1, micro-batch 1 waits for F of stage 0, micro-batch 1, "
        "which runs at the same time as B of stage 0, micro-batch 0",
    )
    with pytest.raises(Deadlock, match="deadlock of 2 of 2 lanes"):
        simulate(TWO, ROW, bad)


def test_a_pair_that_waits_for_itself_is_a_deadlock() -> None:
    """Both stages on device 0: B1 of stage 0 needs B1 of stage 1, which needs the F1 that runs beside it."""
    problem = chain_problem([4, 4], [6, 6], cluster(1), mode="sync", mini_batch=2)
    plan = replace(ROW, stages=(ROW.stages[0], replace(ROW.stages[1], devices=(0,))), placement="in-turn")
    order = "F0.0 F1.0 F0.1 +B1.0 F1.1 B1.1 B0.0 B0.1"
    assert check_schedule(problem, plan, FiniteSchedule(lanes=(lane((0,), order),))).status == "valid"
    itself = FiniteSchedule(lanes=(lane((0,), "F0.0 F1.0 B1.0 F0.1 B0.0 F1.1 +B0.1 B1.1"),))
    witness = check_schedule(problem, plan, itself).witness
    assert witness is not None
    assert witness.rule == "C4"
    with pytest.raises(Deadlock):
        simulate(problem, plan, itself)


@pytest.mark.parametrize(
    ("row", "start", "end", "rule", "said"),
    [
        (1, 0, 2, "shape", "lasts 10 ns, it takes 8 ns"),
        (2, 1, 1, "shape", "does not start together with F of stage 0, micro-batch 1"),
        (3, -1, -1, "shape", "does not start together"),
    ],
)
def test_a_simulated_trace_keeps_the_times_of_pairs(row: int, start: int, end: int, rule: str, said: str) -> None:
    problem = replace(ONE, overlap=0.5)
    trace = simulate(problem, ALONE, PAIRED)

    def moved(column: tuple[int, ...], by: int) -> tuple[int, ...]:
        return (*column[:row], column[row] + by, *column[row + 1 :])

    changed: Trace = replace(trace, start_ns=moved(trace.start_ns, start), end_ns=moved(trace.end_ns, end))
    witness = check_trace(problem, ALONE, PAIRED, changed).witness
    assert witness is not None
    assert (witness.rule, said in witness.message) == (rule, True), witness.message


def test_tasks_of_a_measured_pair_may_overlap_and_no_others() -> None:
    problem = replace(ONE, overlap=1.0)
    trace = replace(simulate(problem, ALONE, PAIRED), origin="measured", memory=())
    uneven = replace(trace, end_ns=(4, 8, *trace.end_ns[2:]))
    assert check_trace(problem, ALONE, PAIRED, uneven).status == "valid"
    crowded = replace(trace, start_ns=(*trace.start_ns[:3], trace.start_ns[3] - 1, *trace.start_ns[4:]))
    witness = check_trace(problem, ALONE, PAIRED, crowded).witness
    assert witness is not None
    assert witness.rule == "resource"
    apart = finite_pairs("F0 F1 B0 F2 B1 B2")
    witness = check_trace(problem, ALONE, apart, trace).witness
    assert witness is not None
    assert witness.rule == "resource"
