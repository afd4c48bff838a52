"""check_trace: a run written down by hand, and one mutation for each rule."""

import msgspec
import pytest

from pipebench.check import check_trace
from pipebench.domain.cluster import LinkLevel, LinkMode
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule, Schedule
from pipebench.domain.trace import MemoryTimeline, Trace
from pipebench.domain.verdict import Witness
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.check.orders import finite, lane

PLAN = stages_plan([[0], [1]])
SCHEDULE = finite(PLAN, ["F0 F1 B0 B1", "F0 B0 F1 B1"])


def pair(mode: LinkMode = "half", memory: int = 100) -> Problem:
    """Two stages with F 2 ns and B 4 ns, transfers of 3 ns."""
    on = cluster(2, memory, link_mode=mode)
    return chain_problem([2, 2], [4, 4], on, activations=[0, 3, 0], mode="sync", mini_batch=2)


# lane 0: F0 0-2, F1 2-4, B0 14-18, B1 20-24; lane 1: F0 5-7, B0 7-11, F1 11-13, B1 13-17.
# Link: F of 0 2-5, F of 1 5-8, B of 0 11-14, B of 1 17-20.
TRACE = Trace(
    origin="simulated",
    lanes=((0,), (1,)),
    lane=(0, 0, 0, 0, 1, 1, 1, 1),
    stage=(0, 0, 0, 0, 1, 1, 1, 1),
    micro_batch=(0, 1, 0, 1, 0, 0, 1, 1),
    kinds="FFBBFBFB",
    start_ns=(0, 2, 14, 20, 5, 7, 11, 13),
    end_ns=(2, 4, 18, 24, 7, 11, 13, 17),
    source=(0, 0, 1, 1),
    target=(1, 1, 0, 0),
    tensor=(0, 0, 0, 0),
    message=(0, 1, 0, 1),
    transfer_kinds="FFBB",
    transfer_start_ns=(2, 5, 11, 17),
    transfer_end_ns=(5, 8, 14, 20),
    memory=(MemoryTimeline(device=0, time_ns=(0, 2, 18), bytes=(10, 60, 100)),),
    total_ns=24,
)


def moved(trace: Trace, column: str, row: int, by: int) -> Trace:
    values = list(getattr(trace, column))
    values[row] += by
    return msgspec.structs.replace(trace, **{column: tuple(values)})


def later(trace: Trace, row: int, by: int, columns: str = "") -> Trace:
    return moved(moved(trace, f"{columns}start_ns", row, by), f"{columns}end_ns", row, by)


def broken(
    trace: Trace,
    problem: Problem | None = None,
    plan: Plan = PLAN,
    schedule: Schedule = SCHEDULE,
    tolerance_ns: int = 0,
) -> Witness:
    verdict = check_trace(problem or pair(), plan, schedule, trace, tolerance_ns=tolerance_ns)
    assert verdict.status == "invalid"
    assert verdict.witness is not None
    return verdict.witness


def test_the_trace_is_valid_in_any_order_of_rows() -> None:
    verdict = check_trace(pair(), PLAN, SCHEDULE, TRACE)
    assert (verdict.status, verdict.peak_bytes, verdict.fit) == ("valid", {0: 100}, "fits")
    back = {c: getattr(TRACE, c)[::-1] for c in ("lane", "stage", "micro_batch", "kinds", "start_ns", "end_ns")}
    assert check_trace(pair(), PLAN, SCHEDULE, msgspec.structs.replace(TRACE, **back)).status == "valid"


@pytest.mark.parametrize(
    ("trace", "rule", "said"),
    [
        (moved(TRACE, "micro_batch", 1, -1), "coverage", "F of stage 0, micro-batch 0 ran 2 times"),
        (moved(TRACE, "micro_batch", 7, 1), "coverage", "B of stage 1, micro-batch 1 ran 0 times"),
        (msgspec.structs.replace(TRACE, lane=(0, 0, 0, 1, 1, 1, 1, 1)), "shape", "lane 1"),
        (msgspec.structs.replace(TRACE, lanes=((0,), (0,))), "shape", "device 0"),
        (moved(TRACE, "end_ns", 3, 1), "shape", "lasts 5 ns, it takes 4 ns"),
        (later(TRACE, 1, -1), "resource", "F of stage 0, micro-batch 1 starts at 1 ns"),
        (later(TRACE, 4, -4), "dependency", "F of stage 1, micro-batch 0 starts at 1 ns"),
        (later(TRACE, 2, -1), "dependency", "ends at 14 ns, B of stage 0, micro-batch 0 starts at 13 ns"),
        (later(TRACE, 0, -1, "transfer_"), "dependency", "ready at 2 ns"),
        (moved(TRACE, "transfer_start_ns", 2, 1), "shape", "lasts 2 ns, at least 3"),
        (later(TRACE, 1, -1, "transfer_"), "resource", "starts at 4 ns"),
        (moved(TRACE, "message", 1, -1), "coverage", "stands twice"),
        (moved(TRACE, "message", 1, 1), "shape", "not there"),
        (moved(TRACE, "tensor", 1, 7), "coverage", "is missing (3 ns)"),
    ],
)
def test_one_mutation_breaks_one_rule(trace: Trace, rule: str, said: str) -> None:
    witness = broken(trace)
    assert (witness.rule, said in witness.message) == (rule, True), witness.message


def test_a_task_that_ran_twice_is_found() -> None:
    again = {c: (*getattr(TRACE, c), getattr(TRACE, c)[3]) for c in ("lane", "stage", "micro_batch")}
    times = {"start_ns": (*TRACE.start_ns, 30), "end_ns": (*TRACE.end_ns, 34)}
    witness = broken(msgspec.structs.replace(TRACE, **again, **times, kinds=TRACE.kinds + "B"))
    assert (witness.rule, witness.stage, witness.micro_batch) == ("coverage", 0, 1)


def test_lanes_keep_the_scheduled_order() -> None:
    """F1 and B0 of lane 1 change places: nothing else is wrong with the run, but it was not asked for."""
    other = finite(PLAN, ["F0 F1 B0 B1", "F0 F1 B0 B1"])
    witness = broken(TRACE, schedule=other)
    assert (witness.rule, witness.stage) == ("resource", 1)


def test_transfers_of_tensors_that_do_not_cross() -> None:
    extra = {
        "source": 1, "target": 0, "tensor": 0, "message": 0, "transfer_start_ns": 30, "transfer_end_ns": 33,
    }  # fmt: skip
    columns: dict[str, object] = {c: (*getattr(TRACE, c), v) for c, v in extra.items()}
    witness = broken(msgspec.structs.replace(TRACE, **columns, transfer_kinds=TRACE.transfer_kinds + "F"))
    assert (witness.rule, witness.stage) == ("shape", 1)


def test_links_by_mode() -> None:
    """The gradient of micro-batch 0 leaves while the activation of micro-batch 1 is on its way."""
    trace = later(later(TRACE, 1, 5, "transfer_"), 6, 2)
    trace = later(later(later(trace, 7, 2), 3, 2, "transfer_"), 3, 2)
    assert broken(trace).rule == "resource"
    for mode, valid in (("full", True), ("delay", True)):
        problem = pair("full" if mode == "full" else "delay")
        assert (check_trace(problem, PLAN, SCHEDULE, trace).status == "valid") == valid
    # The activation of 1 overlaps that of 0: only a link without contention carries both.
    trace = later(TRACE, 1, -1, "transfer_")
    assert broken(trace, pair("full")).rule == "resource"
    assert check_trace(pair("delay"), PLAN, SCHEDULE, trace).status == "valid"


def test_a_shared_way_out_of_a_node_carries_one_transfer_at_a_time() -> None:
    """Stages 0 and 1 on node 0 send to stages 2 and 3 on node 1: other links, the same network card."""
    node = LinkLevel(name="node", group=2, bandwidth_bytes_s=1e9)
    for shared, valid in ((2e9, True), (1e9, True), (0.75e9, False)):
        network = LinkLevel(name="network", group=4, bandwidth_bytes_s=1e9, shared_bandwidth_bytes_s=shared)
        on = msgspec.structs.replace(cluster(4), levels=(node, network), link_mode="full")
        problem = dag_problem([2] * 4, [0] * 4, [(0, (2,), 3), (1, (3,), 3)], on)
        plan = stages_plan([[0], [1], [2], [3]])
        schedule = finite(plan, ["F0 B0"] * 4)
        trace = Trace(
            origin="simulated", lanes=((0,), (1,), (2,), (3,)), lane=(0, 1, 2, 3) * 2, stage=(0, 1, 2, 3) * 2,
            micro_batch=(0,) * 8, kinds="FFFFBBBB", start_ns=(0, 0, 6, 9, 40, 40, 8, 20),
            end_ns=(2, 2, 8, 11, 40, 40, 8, 20), source=(0, 1, 2, 3), target=(2, 3, 0, 1), tensor=(0, 1, 0, 1),
            message=(0,) * 4, transfer_kinds="FFBB", transfer_start_ns=(2, 5, 11, 20),
            transfer_end_ns=(6, 9, 15, 24), total_ns=40,
        )  # fmt: skip
        verdict = check_trace(problem, plan, schedule, trace)
        assert (verdict.status == "valid") == valid, shared
    assert verdict.witness is not None
    assert (verdict.witness.rule, verdict.witness.stage) == ("resource", 1)
    assert "group 0 at level 'network'" in verdict.witness.message


def test_a_shared_way_into_a_node_carries_one_transfer_at_a_time() -> None:
    """Stages 0 and 1 on nodes 0 and 1 send to stages 2 and 3 on node 2."""
    node = LinkLevel(name="node", group=2, bandwidth_bytes_s=1e9)
    for shared, valid in ((1e9, True), (0.75e9, False)):
        network = LinkLevel(name="network", group=6, bandwidth_bytes_s=1e9, shared_bandwidth_bytes_s=shared)
        on = msgspec.structs.replace(cluster(6), levels=(node, network), link_mode="full")
        problem = dag_problem([2] * 4, [0] * 4, [(0, (2,), 3), (1, (3,), 3)], on)
        devices = (0, 2, 4, 5)
        stages = tuple(Stage(operators=(f"op{i}",), devices=(d,), micro_batch=1) for i, d in enumerate(devices))
        plan = Plan(stages=stages)
        schedule = finite(plan, ["F0 B0"] * 4)
        trace = Trace(
            origin="simulated", lanes=((0,), (2,), (4,), (5,)), lane=(0, 1, 2, 3) * 2, stage=(0, 1, 2, 3) * 2,
            micro_batch=(0,) * 8, kinds="FFFFBBBB", start_ns=(0, 0, 6, 9, 40, 40, 8, 20),
            end_ns=(2, 2, 8, 11, 40, 40, 8, 20), source=(0, 1, 2, 3), target=(2, 3, 0, 1), tensor=(0, 1, 0, 1),
            message=(0,) * 4, transfer_kinds="FFBB", transfer_start_ns=(2, 5, 11, 20),
            transfer_end_ns=(6, 9, 15, 24), total_ns=40,
        )  # fmt: skip
        verdict = check_trace(problem, plan, schedule, trace)
        assert (verdict.status == "valid") == valid, verdict
    assert verdict.witness is not None
    assert (verdict.witness.rule, verdict.witness.stage) == ("resource", 1)
    assert "way into group 2 at level 'network'" in verdict.witness.message


def test_transfers_in_place_or_of_no_length_take_no_link() -> None:
    measured = msgspec.structs.replace(TRACE, origin="measured")
    # The gradient of 0 passes in no time while the activation of 1 is still on its way.
    instant = moved(
        moved(moved(measured, "transfer_end_ns", 1, 5), "transfer_start_ns", 2, 1), "transfer_end_ns", 2, -2
    )
    late = later(later(later(instant, 6, 2), 7, 2), 3, 0)
    late = later(later(late, 3, 2, "transfer_"), 3, 2)
    assert check_trace(pair(), PLAN, SCHEDULE, late).status == "valid"
    # Measured transfers last from one call to another: those of a real link may overlap.
    together = later(TRACE, 1, -1, "transfer_")
    assert broken(together).rule == "resource"
    measured = msgspec.structs.replace(together, origin="measured")
    assert check_trace(pair(), PLAN, SCHEDULE, measured).status == "valid"
    # On one device two tensors pass at once.
    stages = PLAN.stages
    plan = Plan(stages=(stages[0], msgspec.structs.replace(stages[1], devices=(0,))), placement="listed")
    one = FiniteSchedule(lanes=(lane((0,), "F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1"),))
    trace = Trace(
        origin="measured", lanes=((0,),), lane=(0,) * 8, stage=(0, 0, 1, 1, 1, 1, 0, 0),
        micro_batch=(0, 1) * 4, kinds="FFFFBBBB", start_ns=(0, 2, 9, 11, 13, 17, 21, 25),
        end_ns=(2, 4, 11, 13, 17, 21, 25, 29), source=(0, 0), target=(1, 1), tensor=(0, 0), message=(0, 1),
        transfer_kinds="FF", transfer_start_ns=(4, 5), transfer_end_ns=(8, 9), total_ns=29,
    )  # fmt: skip
    assert check_trace(pair(), plan, one, trace).status == "valid"


def test_other_copies_hold_what_the_first_one_holds() -> None:
    problem = chain_problem([2], [4], cluster(2, 100), mode="sync", mini_batch=2)
    plan = msgspec.structs.replace(stages_plan([[0]]), copies=2)
    schedule = finite(plan, ["F0 B0"])
    trace = Trace(
        origin="simulated", lanes=((0,),), lane=(0, 0), stage=(0, 0), micro_batch=(0, 0), kinds="FB",
        start_ns=(0, 2), end_ns=(2, 6), memory=(MemoryTimeline(device=0, time_ns=(0,), bytes=(7,)),), total_ns=6,
    )  # fmt: skip
    assert check_trace(problem, plan, schedule, trace).peak_bytes == {0: 7, 1: 7}


def test_memory_over_time() -> None:
    witness = broken(TRACE, pair(memory=99))
    assert (witness.rule, witness.device, witness.bytes_over, witness.instant_ns) == ("memory", 0, 1, 18)
    strange = MemoryTimeline(device=5, time_ns=(0,), bytes=(1,))
    assert broken(msgspec.structs.replace(TRACE, memory=(strange,))).rule == "shape"
    backwards = MemoryTimeline(device=0, time_ns=(2, 1), bytes=(1, 1))
    assert broken(msgspec.structs.replace(TRACE, memory=(backwards,))).rule == "shape"


def test_measured_traces_have_their_own_durations_and_a_tolerance() -> None:
    measured = msgspec.structs.replace(TRACE, origin="measured")
    slow = moved(moved(measured, "end_ns", 3, 9), "end_ns", 7, -1)
    assert check_trace(pair(), PLAN, SCHEDULE, slow).status == "valid"
    none = dict.fromkeys(("source", "target", "tensor", "message", "transfer_start_ns", "transfer_end_ns"), ())
    assert check_trace(
        pair(), PLAN, SCHEDULE, msgspec.structs.replace(measured, **none, transfer_kinds="")
    ).status == "valid"  # fmt: skip
    early = later(measured, 4, -2)
    assert broken(early, tolerance_ns=1).rule == "dependency"
    assert check_trace(pair(), PLAN, SCHEDULE, early, tolerance_ns=2).status == "valid"
    assert broken(moved(measured, "end_ns", 0, -9)).rule == "shape"


def test_a_backward_after_its_own_forward() -> None:
    problem = chain_problem([2], [4], cluster(1))
    plan = stages_plan([[0]])
    schedule = PeriodicSchedule(period_ns=6, kinds="FB", stage=(0, 0), start_ns=(0, 2), shift=(0, 0))
    trace = Trace(
        origin="simulated", lanes=((0,),), lane=(0, 0), stage=(0, 0), micro_batch=(0, 0), kinds="FB",
        start_ns=(0, 2), end_ns=(2, 6), total_ns=6, period_ns=6,
    )  # fmt: skip
    assert check_trace(problem, plan, schedule, trace).status == "valid"
    early = msgspec.structs.replace(trace, start_ns=(4, 0), end_ns=(6, 4))
    assert broken(early, problem, plan, schedule).rule == "dependency"


def test_a_periodic_schedule_unrolled() -> None:
    problem = chain_problem([2, 2], [4, 4], cluster(2), activations=[0, 3, 0])
    schedule = PeriodicSchedule(
        period_ns=12, kinds="FFBB", stage=(0, 1, 1, 0), start_ns=(0, 5, 7, 2), shift=(0, 0, 0, 1),
        source=(0, 1), target=(1, 0), transfer_kinds="FB", transfer_start_ns=(2, 11), transfer_shift=(0, 0),
    )  # fmt: skip
    runs = 3
    starts = {("F", 0): 0, ("F", 1): 5, ("B", 1): 7, ("B", 0): 14}
    rows = [(kind, s, m, t + 12 * m) for (kind, s), t in starts.items() for m in range(runs)]
    moves = [(kind, m, t + 12 * m) for kind, t in (("F", 2), ("B", 11)) for m in range(runs)]
    trace = Trace(
        origin="simulated",
        lanes=((0,), (1,)),
        lane=tuple(s for _, s, _, _ in rows),
        stage=tuple(s for _, s, _, _ in rows),
        micro_batch=tuple(m for _, _, m, _ in rows),
        kinds="".join(kind for kind, _, _, _ in rows),
        start_ns=tuple(t for _, _, _, t in rows),
        end_ns=tuple(t + (2 if kind == "F" else 4) for kind, _, _, t in rows),
        source=tuple(int(kind == "B") for kind, _, _ in moves),
        target=tuple(int(kind == "F") for kind, _, _ in moves),
        tensor=(0,) * len(moves),
        message=tuple(m for _, m, _ in moves),
        transfer_kinds="".join(kind for kind, _, _ in moves),
        transfer_start_ns=tuple(t for _, _, t in moves),
        transfer_end_ns=tuple(t + 3 for _, _, t in moves),
        total_ns=42,
        period_ns=12,
    )
    assert check_trace(problem, PLAN, schedule, trace).status == "valid"
    assert broken(later(trace, 4, -1), problem, schedule=schedule).rule == "dependency"
    assert broken(moved(trace, "micro_batch", 4, 1), problem, schedule=schedule).rule == "coverage"
    assert broken(later(trace, 1, 4), problem, schedule=schedule).rule == "resource"
    assert broken(later(trace, 2, 100), problem, schedule=schedule).rule == "dependency"
