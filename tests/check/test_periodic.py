"""check_schedule on periodic schedules: one mutation for each rule, and closed forms of 1F1B*."""

from collections.abc import Sequence

import msgspec
import pytest

from pipebench.check import check_schedule
from pipebench.domain.cluster import LinkMode
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.domain.verdict import Witness
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.check.orders import finite, gpipe

Instants = dict[tuple[str, int], int]
"""(kind, stage) to the absolute start of micro-batch 0, and (kind, hop) for the transfer over cut `hop`."""


def periodic(period: int, operations: Instants, transfers: Instants) -> PeriodicSchedule:
    """The schedule of a chain: F transfers go from stage hop to hop + 1, B transfers back."""
    hops = [(hop, hop + 1) if kind == "F" else (hop + 1, hop) for kind, hop in transfers]
    return PeriodicSchedule(
        period_ns=period,
        kinds="".join(kind for kind, _ in operations),
        stage=tuple(stage for _, stage in operations),
        start_ns=tuple(t % period for t in operations.values()),
        shift=tuple(t // period for t in operations.values()),
        source=tuple(source for source, _ in hops),
        target=tuple(target for _, target in hops),
        transfer_kinds="".join(kind for kind, _ in transfers),
        transfer_start_ns=tuple(t % period for t in transfers.values()),
        transfer_shift=tuple(t // period for t in transfers.values()),
    )


# Two stages (F 2, B 4), one transfer of 3 ns each way between them.
PAIR = chain_problem([2, 2], [4, 4], cluster(2), activations=[5, 3, 0], weights=[1, 1])
PLAN = stages_plan([[0], [1]])
OPERATIONS = {("F", 0): 0, ("F", 1): 5, ("B", 1): 7, ("B", 0): 14}
TRANSFERS = {("F", 0): 2, ("B", 0): 11}


def broken(problem: Problem, plan: Plan, schedule: PeriodicSchedule, *, strict: bool = False) -> Witness:
    verdict = check_schedule(problem, plan, schedule, strict_buffers=strict)
    assert verdict.status == "invalid"
    assert verdict.witness is not None
    return verdict.witness


def shifted(instants: Instants, key: tuple[str, int], by: int) -> Instants:
    return {k: t + by * (k == key) for k, t in instants.items()}


def test_a_hand_written_pattern_is_valid_with_the_memory_that_it_needs() -> None:
    verdict = check_schedule(PAIR, PLAN, periodic(18, OPERATIONS, TRANSFERS))
    assert (verdict.status, verdict.fit) == ("valid", "fits")
    assert verdict.peak_bytes == {0: 3 * 1 + 5 + 2 * 3, 1: 3 * 1 + 3 + 2 * 3}
    # At period 12 a second micro-batch is live on stage 0 (from 0 to 18), none more on stage 1 (from 5 to 11).
    assert check_schedule(PAIR, PLAN, periodic(12, OPERATIONS, TRANSFERS)).peak_bytes == {0: 3 + 2 * 5 + 6, 1: 12}


@pytest.mark.parametrize(
    ("key", "transfer"),
    [(("F", 1), False), (("B", 1), False), (("B", 0), False), (("F", 0), True), (("B", 0), True)],
)
def test_one_nanosecond_too_early_breaks_a_dependency(key: tuple[str, int], transfer: bool) -> None:
    operations = OPERATIONS if transfer else shifted(OPERATIONS, key, -1)
    transfers = shifted(TRANSFERS, key, -1) if transfer else TRANSFERS
    witness = broken(PAIR, PLAN, periodic(18, operations, transfers))
    assert witness.rule == "dependency"
    assert "(1 ns too late)" in witness.message


def test_a_whole_period_too_early_breaks_a_dependency() -> None:
    schedule = periodic(12, OPERATIONS, TRANSFERS)
    shifts = tuple(s - (i == 3) for i, s in enumerate(schedule.shift))
    witness = broken(PAIR, PLAN, msgspec.structs.replace(schedule, shift=shifts))
    assert (witness.rule, witness.stage) == ("dependency", 0)


def test_a_period_one_shorter_than_the_work_or_an_overlap_breaks_the_device() -> None:
    alone = chain_problem([2], [4], cluster(1))
    plan = stages_plan([[0]])
    tight = periodic(6, {("F", 0): 0, ("B", 0): 2}, {})
    assert check_schedule(alone, plan, tight).status == "valid"
    witness = broken(alone, plan, periodic(5, {("F", 0): 0, ("B", 0): 2}, {}))
    assert (witness.rule, witness.stage) == ("resource", 0)
    assert witness.message == "B of stage 0 overlaps F of stage 0 on devices (0,) by 1 ns"
    # Starts are 3 apart, but B wraps around into the next period's F.
    witness = broken(alone, plan, periodic(6, {("F", 0): 0, ("B", 0): 3}, {}))
    assert "overlaps F of stage 0" in witness.message


@pytest.mark.parametrize(("mode", "valid"), [("half", False), ("full", True), ("delay", True)])
def test_a_link_carries_one_transfer_at_a_time_by_its_mode(mode: LinkMode, valid: bool) -> None:
    problem = chain_problem([2, 2], [4, 4], cluster(2, link_mode=mode), activations=[0, 3, 0])
    # F transfer at 2..5, B transfer at 13..16 = 1..4 modulo 12.
    schedule = periodic(12, OPERATIONS | {("B", 0): 16}, TRANSFERS | {("B", 0): 13})
    if valid:
        assert check_schedule(problem, PLAN, schedule).status == "valid"
    else:
        witness = broken(problem, PLAN, schedule)
        assert witness.rule == "resource"
        assert "on the link between devices (0,) and (1,)" in witness.message


def test_a_transfer_without_bytes_takes_no_link() -> None:
    """Ids have no gradient: its transfer may be listed anywhere, even while the ids themselves travel."""
    graph = PAIR.profile.graph
    ids = msgspec.structs.replace(graph.tensors[0], gradient_bytes_per_sample=0.0)
    profile = msgspec.structs.replace(PAIR.profile, graph=msgspec.structs.replace(graph, tensors=(ids,)))
    problem = msgspec.structs.replace(PAIR, profile=profile)
    operations = OPERATIONS | {("B", 0): 15}
    assert check_schedule(problem, PLAN, periodic(12, operations, TRANSFERS | {("B", 0): 15})).status == "valid"
    assert check_schedule(problem, PLAN, periodic(12, operations, {("F", 0): 2})).status == "valid"


def test_the_workspace_of_the_running_operation_counts() -> None:
    costs = PAIR.profile.costs[0]
    scratch = tuple(msgspec.structs.replace(c, workspace_bytes=1000) for c in costs.operators)
    profile = msgspec.structs.replace(PAIR.profile, costs=(msgspec.structs.replace(costs, operators=scratch),))
    verdict = check_schedule(
        msgspec.structs.replace(PAIR, profile=profile), PLAN, periodic(18, OPERATIONS, TRANSFERS)
    )
    assert verdict.peak_bytes == {0: 1014, 1: 1012}


def test_a_stage_that_takes_no_time_still_saves() -> None:
    problem = chain_problem([0], [0], cluster(1), saved=[7])
    schedule = periodic(1, {("F", 0): 0, ("B", 0): 0}, {})
    assert check_schedule(problem, stages_plan([[0]]), schedule).peak_bytes == {0: 7}


def test_a_transfer_longer_than_the_period_needs_a_link_without_contention() -> None:
    operations = {("F", 0): 0, ("F", 1): 9, ("B", 1): 11, ("B", 0): 26}
    transfers = {("F", 0): 2, ("B", 0): 15}
    for mode, status in (("full", "invalid"), ("delay", "valid")):
        on = cluster(2, link_mode="full" if mode == "full" else "delay")
        problem = chain_problem([2, 2], [4, 4], on, activations=[0, 7, 0])
        assert check_schedule(problem, PLAN, periodic(6, operations, transfers)).status == status


@pytest.mark.parametrize(
    ("mutation", "rule"),
    [
        ({"kinds": "FFB", "stage": (0, 1, 1), "start_ns": (0, 5, 7), "shift": (0, 0, 0)}, "coverage"),
        ({"kinds": "FFBF"}, "coverage"),
        ({"stage": (0, 1, 1, 2)}, "shape"),
        ({"source": (0, 0), "target": (1, 1)}, "shape"),
        (
            {
                "source": (0,),
                "target": (1,),
                "transfer_kinds": "F",
                "transfer_start_ns": (2,),
                "transfer_shift": (0,),
            },
            "coverage",
        ),
        ({"transfer_kinds": "FF", "source": (0, 0), "target": (1, 1)}, "coverage"),
    ],
)
def test_each_operation_stands_exactly_once(mutation: dict[str, object], rule: str) -> None:
    assert (
        broken(PAIR, PLAN, msgspec.structs.replace(periodic(18, OPERATIONS, TRANSFERS), **mutation)).rule == rule
    )


def test_one_byte_too_much_memory() -> None:
    schedule = periodic(12, OPERATIONS, TRANSFERS)
    for memory, status in ((19, "valid"), (18, "invalid")):
        problem = chain_problem([2, 2], [4, 4], cluster(2, memory), activations=[5, 3, 0], weights=[1, 1])
        verdict = check_schedule(problem, PLAN, schedule)
        assert verdict.status == status
    witness = verdict.witness
    assert witness is not None
    assert (witness.rule, witness.device, witness.stage, witness.bytes_over) == ("memory", 0, 0, 1)
    assert witness.instant_ns == 0
    assert verdict.fit == "does not fit"


def test_regime_and_micro_batches() -> None:
    sync = msgspec.structs.replace(PAIR, regime=msgspec.structs.replace(PAIR.regime, mode="sync"))
    assert broken(sync, PLAN, periodic(18, OPERATIONS, TRANSFERS)).rule == "shape"
    # A finite schedule in async is fine, with the memory of async.
    verdict = check_schedule(PAIR, PLAN, finite(PLAN, [gpipe(1)] * 2))
    assert (verdict.status, verdict.peak_bytes) == ("valid", {0: 3 + 5 + 6, 1: 3 + 3 + 6})
    wide = msgspec.structs.replace(PAIR, mini_batch=2)
    first, second = PLAN.stages
    unequal = Plan(stages=(first, msgspec.structs.replace(second, micro_batch=2)))
    assert broken(wide, unequal, periodic(18, OPERATIONS, TRANSFERS)).rule == "shape"


def test_order_edges_bind_the_same_micro_batch_both_ways() -> None:
    problem = dag_problem([2, 2], [2, 2], [], cluster(2), mode="async")
    plan = stages_plan([[0], [1]], order_edges=[(0, 1)])
    good = {("F", 0): 0, ("F", 1): 2, ("B", 1): 4, ("B", 0): 6}
    assert check_schedule(problem, plan, periodic(8, good, {})).status == "valid"
    assert broken(problem, plan, periodic(8, shifted(good, ("F", 0), 1), {})).rule == "dependency"
    assert broken(problem, plan, periodic(8, shifted(good, ("B", 1), 1), {})).rule == "dependency"
    free = stages_plan([[0], [1]])
    assert check_schedule(problem, free, periodic(8, shifted(good, ("B", 1), 1), {})).status == "valid"


def test_strict_buffers_hold_one_tensor() -> None:
    on = cluster(2, link_mode="delay")
    problem = chain_problem([2, 2], [4, 4], on, activations=[0, 3, 0])
    # The receive buffer is taken from 2 to F of stage 1.
    for start, valid in ((11, True), (12, False)):
        operations = {("F", 0): 0, ("F", 1): start, ("B", 1): start + 2, ("B", 0): start + 9}
        transfers = {("F", 0): 2, ("B", 0): start + 6}
        schedule = periodic(9, operations, transfers)
        assert check_schedule(problem, PLAN, schedule).status == "valid"
        assert check_schedule(problem, PLAN, schedule, strict_buffers=True).status == (
            "valid" if valid else "invalid"
        )
    assert "receive buffer" in broken(problem, PLAN, schedule, strict=True).message
    # The send buffer is taken from 2 to the end of the transfer.
    for start, valid in ((8, True), (9, False)):
        operations = {("F", 0): 0, ("F", 1): start + 3, ("B", 1): start + 5, ("B", 0): start + 12}
        transfers = {("F", 0): start, ("B", 0): start + 9}
        schedule = periodic(9, operations, transfers)
        assert check_schedule(problem, PLAN, schedule, strict_buffers=True).status == (
            "valid" if valid else "invalid"
        )
    assert "send buffer" in broken(problem, PLAN, schedule, strict=True).message


def one_f_one_b_star(
    forward: Sequence[int], backward: Sequence[int], one_way: Sequence[int], period: int
) -> tuple[PeriodicSchedule, list[int]]:
    """1F1B* of a chain and the group of each stage, from MadPipe section 4.1 as the notes state it."""
    stages = len(forward)
    chain: list[tuple[str, int, int, int]] = []
    for i in range(stages):
        chain.append(("stage", i, forward[i], backward[i]))
        if i + 1 < stages:
            chain.append(("hop", i, one_way[i], one_way[i]))
    group, load, groups = 1, 0, []
    for _, _, f, b in reversed(chain):
        group, load = (group, load + f + b) if load + f + b <= period else (group + 1, f + b)
        groups.append(group)
    groups.reverse()
    starts, clock = [], 0
    for _, _, f, _ in chain:
        starts.append(clock)
        clock += f
    operations: Instants = {}
    transfers: Instants = {}
    for g in set(groups):
        members = [i for i in range(len(chain)) if groups[i] == g]
        last = members[-1]
        back = starts[last] + chain[last][2] + (g - 1) * period
        for i in reversed(members):
            what, number, _, b = chain[i]
            instants = operations if what == "stage" else transfers
            instants["F", number], instants["B", number] = starts[i], back
            back += b
    of_stages = [g for g, item in zip(groups, chain, strict=True) if item[0] == "stage"]
    return periodic(period, operations, transfers), of_stages


@pytest.mark.parametrize("stages", [3, 4, 5])
def test_uniform_chain_closed_forms(stages: int) -> None:
    """MadPipe notes, section 9: one layer a stage, U = u = 6, every C = c = 4 (2 ns one way)."""
    u, c, crossing, saved, weight = 6, 4, 2, 50, 7
    expected = {
        u: [2 * (stages - i) - 1 for i in range(stages)],
        u + c: [stages - i for i in range(stages)],
        stages * u + (stages - 1) * c: [1] * stages,
    }
    plan = stages_plan([[i] for i in range(stages)])
    for period, groups in expected.items():
        schedule, found = one_f_one_b_star([2] * stages, [4] * stages, [crossing] * (stages - 1), period)
        assert found == groups
        peaks = {
            i: 3 * weight + groups[i] * saved + 2 * crossing * ((i > 0) + (i < stages - 1)) for i in range(stages)
        }
        for short, status in ((0, "valid"), (1, "invalid")):
            problem = chain_problem(
                [2] * stages, [4] * stages, cluster(stages, max(peaks.values()) - short),
                activations=[0, *[crossing] * (stages - 1), 0], weights=[weight] * stages, saved=[saved] * stages,
            )  # fmt: skip
            verdict = check_schedule(problem, plan, schedule)
            assert (verdict.status, verdict.peak_bytes) == (status, peaks)
        assert verdict.witness is not None
        assert (verdict.witness.rule, verdict.witness.bytes_over) == ("memory", 1)


def test_without_communication_a_uniform_chain_needs_as_many_live_as_stages_remain() -> None:
    schedule, groups = one_f_one_b_star([2] * 4, [4] * 4, [0] * 3, 6)
    assert groups == [4, 3, 2, 1]
    problem = chain_problem([2] * 4, [4] * 4, cluster(4), saved=[10] * 4)
    assert check_schedule(problem, stages_plan([[0], [1], [2], [3]]), schedule).peak_bytes == {
        i: 10 * (4 - i) for i in range(4)
    }


def test_a_shared_device_holds_all_its_stages() -> None:
    """A stage at either end of the chain on device 0, as in MadPipe's special processor."""
    problem = chain_problem([1, 5, 1], [1, 5, 1], cluster(2), saved=[10, 100, 1000], weights=[1, 1, 1])
    first, middle, last = stages_plan([[0], [1], [2]]).stages
    plan = Plan(stages=(first, middle, msgspec.structs.replace(last, devices=(0,))), placement="listed")
    operations = {("F", 0): 0, ("F", 1): 1, ("F", 2): 6, ("B", 2): 7, ("B", 1): 8, ("B", 0): 13}
    # At period 10: B of stage 1 at 8..13 and F at 1..6 modulo 10 collide; shift B by 3.
    assert broken(problem, plan, periodic(10, operations, {})).rule == "resource"
    later = operations | {("B", 1): 16, ("B", 0): 21, ("F", 1): 1}
    verdict = check_schedule(problem, plan, periodic(10, later, {}))
    # Stage 0 is live from 0 to 22: three micro-batches at an F of stage 0 (0, 10, 20), two at 6 (F of stage 2).
    assert (verdict.status, verdict.peak_bytes[1]) == ("valid", 3 + 2 * 100)
    assert verdict.peak_bytes[0] == 2 * 3 + max(3 * 10, 2 * 10 + 1000)
