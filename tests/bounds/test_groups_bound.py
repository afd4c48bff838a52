"""The bound from groups of devices, against closed forms, plain enumeration and plans whose memory just fits."""

from itertools import islice, product
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import time_bound
from pipebench.bounds.by_group import groups
from pipebench.bounds.by_group.boxes import NEVER, Box, BoxTables, CaseTables, Graph
from pipebench.bounds.by_group.group_tables import (
    CUT,
    FULL,
    MADE_BYTES,
    READ_BYTES,
    SAVED,
    WHOLE,
    GroupTables,
    Kind,
)
from pipebench.bounds.by_group.groups import MOST_OPERATORS, Division, groups_proof, several_pipelines
from pipebench.bounds.by_group.partition import MOST_PAIRS, TOO_MANY, Flow, Groups, Table, fewest_of_sets
from pipebench.bounds.by_group.rounds import MOST_STEPS, Rounds, devices_of_sets
from pipebench.bounds.operators import every_stage_ns
from pipebench.check import check_schedule
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.drawn_problems import problems
from tests.bounds.every_plan import partitions, plans
from tests.bounds.plain_groups_bound import PlainGroups
from tests.bounds.test_shared_bounds import with_memory, with_overhead
from tests.builders import chain_problem, cluster, dag_problem
from tests.nightly import examples
from tests.plugins.running import services
from tests.plugins.search.tight import tight

ONE = Pins(data_parallel=1)


def fastest(problem: Problem, every: list[Plan]) -> int:
    """The shortest mini-batch of these plans, in ns."""
    found = []
    for plan in every:
        for scheduler in ("1f1b*", "1f1b-rr", "periodic-bnb", "greedy"):
            try:
                schedule = services().schedule(scheduler, problem, plan)
            except PipebenchError:
                continue
            if check_schedule(problem, plan, schedule).status == "valid":
                found.append(round(metrics(problem, plan, simulate(problem, plan, schedule)).seconds * 1e9))
    return min(found)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_the_fewest_devices_are_those_of_the_best_partition(data: st.DataObject) -> None:
    operators = data.draw(st.integers(1, 4))
    one = [data.draw(st.sampled_from([1, TOO_MANY])) for _ in range(1 << operators)]
    several = [data.draw(st.sampled_from([2, 3, TOO_MANY])) for _ in range(1 << operators)]
    needed = np.array([[min(each) for each in zip(one, several, strict=True)], several])
    every = [
        [sum(1 << int(name) for name in group) for group in groups]
        for groups in partitions([str(operator) for operator in range(operators)])
    ]
    expected = min(sum(int(needed[0, each]) for each in groups) for groups in every)
    with_several = min(
        sum(several[each] if each == chosen else int(needed[0, each]) for each in groups)
        for groups in every
        for chosen in groups
    )
    found = [min(each[-1], TOO_MANY) for each in fewest_of_sets(needed)]
    assert found == [min(expected, TOO_MANY), min(with_several, TOO_MANY)]


def flow(operators: int, kinds: int = 1) -> Flow:
    """No tensors, and nobody waits."""
    nothing = np.zeros(operators, np.int64)
    none = np.zeros(0, np.int64)
    return Flow(none, none, nothing, nothing, nothing, nothing, np.zeros((kinds, 1 << operators), np.int64))


def table(rows: list[list[tuple[int, int]]]) -> Table:
    """Time and memory of rows, for each operator."""
    each = np.array([row for found in rows for row in found], np.int64).reshape(-1, 2)
    none = np.zeros((len(each), 0), np.int64)
    first = np.cumsum([0, *map(len, rows)])
    return Table(first, each.T[:1].copy(), np.zeros(len(each), np.int64), each.T[1].copy(), none, none, none, none)


def idle(operators: int, rows: int) -> Rounds:
    """No micro-batch stays."""
    none, each = np.zeros(rows, np.int64), np.zeros(operators, np.int64)
    behind = np.zeros((operators, operators), np.int64)
    return Rounds(none, none, none, none, none, none + 1, none, none, each, each, behind, 0)


def held_sets(
    flow: Flow, table: Table, time_ns: int, room_ns: int, memory: int, rounds: Rounds | None = None
) -> list[bool]:
    """Of each set whether a group may hold it, `idle` unless it is said otherwise."""
    operators, sets = len(flow.here_ns), 1 << len(flow.here_ns)
    rounds, most = rounds or idle(operators, len(table.held_bytes)), np.ones(sets, np.int64)
    known = Groups(most[:1], np.full((1, sets), NEVER), np.full((1, sets), -1))
    needed, again = (devices_of_sets(flow, table, rounds, known, most, time_ns, room_ns, memory) for _ in range(2))
    assert (needed == again).all()  # of what is known by then
    return (needed[0] == 1).tolist()


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_a_set_is_held_where_some_rows_fit_time_and_memory_together(data: st.DataObject) -> None:
    row = st.tuples(st.integers(0, 9), st.integers(0, 9))
    rows = data.draw(st.lists(st.lists(row, max_size=3), min_size=1, max_size=4))
    time, memory = data.draw(st.integers(-1, 25)), data.draw(st.integers(0, 25))
    held = held_sets(flow(len(rows)), table(rows), time, time, memory)
    for one in range(1, 1 << len(rows)):
        chosen = product(*(found for at, found in enumerate(rows) if one >> at & 1))
        fits = any(sum(t for t, _ in each) <= time and sum(m for _, m in each) <= memory for each in chosen)
        assert held[one] == fits


@st.composite
def flows_and_tables(draw: st.DrawFn) -> tuple[Flow, Table]:
    """Two or three operators, tensors with one or two readers, a row or two for each operator."""
    count, few = draw(st.integers(2, 3)), st.integers(0, 6)
    tensors = draw(
        st.lists(st.lists(st.integers(0, count - 1), min_size=2, max_size=3, unique=True), min_size=1, max_size=2)
    )
    each = [draw(st.integers(1, 2)) for _ in range(count)]

    def drawn(*shape: int) -> IntArray:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(few, min_size=size, max_size=size)), np.int64).reshape(shape)

    rows, tensor = sum(each), len(tensors)
    flags = np.array(draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)), np.int64)
    flow = Flow(
        makers=np.array([ends[0] for ends in tensors]),
        ends=np.array([sum(1 << end for end in ends) for ends in tensors]),
        buffered=flags,
        above_ns=drawn(count),
        here_ns=drawn(count),
        below_ns=drawn(count),
        waits_ns=drawn(2, 1 << count),
    )
    table = Table(
        first=np.cumsum([0, *each]),
        time_ns=drawn(2, rows),
        round_ns=drawn(rows),
        held_bytes=drawn(rows),
        made_bytes=drawn(rows, tensor),
        read_bytes=drawn(rows, tensor),
        made_ns=drawn(rows, tensor),
        read_ns=drawn(rows, tensor),
    )
    return flow, table


def holds(flow: Flow, table: Table, inside: set[int], limits: tuple[int, int, int]) -> bool:
    """As lemmas 10 and 11 say, for both kinds of time: every choice of rows is tried."""
    time_ns, room_ns, memory = limits
    offered = []
    for operator in sorted(inside):
        found = []
        for row in range(table.first[operator], table.first[operator + 1]):
            around = [flow.above_ns[operator] + table.round_ns[row] + flow.below_ns[operator]]
            held = table.held_bytes[row]
            for tensor, (maker, ends) in enumerate(zip(flow.makers.tolist(), flow.ends.tolist(), strict=True)):
                readers = {at for at in range(len(flow.buffered)) if ends >> at & 1} - {maker}
                if operator == maker and readers - inside:
                    held += table.made_bytes[row, tensor] if flow.buffered[operator] else 0
                    sent = flow.above_ns[operator] + table.round_ns[row] + table.made_ns[row, tensor]
                    around += [sent + flow.here_ns[each] + flow.below_ns[each] for each in readers - inside]
                if operator in readers and maker not in inside:
                    ahead = flow.above_ns[maker] + flow.here_ns[maker] + table.read_ns[row, tensor]
                    around.append(ahead + table.round_ns[row] + flow.below_ns[operator])
                    if operator == min((each for each in readers & inside if flow.buffered[each]), default=-1):
                        held += table.read_bytes[row, tensor]
            if max(around) <= time_ns:
                found.append((table.time_ns[:, row], held))
        offered.append(found)
    room = room_ns - flow.waits_ns[:, sum(1 << operator for operator in inside)]
    return any(
        bool((sum(time for time, _ in chosen) <= room).all()) and sum(held for _, held in chosen) <= memory
        for chosen in product(*offered)
    )


@settings(max_examples=examples(500), deadline=None)
@given(flows_and_tables(), st.integers(5, 40), st.integers(5, 40), st.integers(0, 40))
def test_messages_and_buffers_count_where_a_tensor_crosses(
    drawn: tuple[Flow, Table], time_ns: int, room_ns: int, memory: int
) -> None:
    flow, table = drawn
    count = len(flow.buffered)
    held = held_sets(flow, table, time_ns, room_ns, memory)
    for one in range(1, 1 << count):
        inside = {operator for operator in range(count) if one >> operator & 1}
        expected = holds(flow, table, inside, (time_ns, room_ns, memory))
        assert held[one] == expected, inside


@pytest.mark.parametrize(("buffered", "needed"), [((1, 1, 1), 5), ((0, 0, 1), 7), ((0, 0, 0), 0)])
def test_of_several_readers_the_first_with_buffers_is_charged(buffered: tuple[int, ...], needed: int) -> None:
    """Operator 0 is elsewhere. Readers 1 and 2 would take 5 and 7 bytes for what it sends."""
    nothing, none = np.zeros(3, np.int64), np.zeros((3, 1), np.int64)
    fork = Flow(
        makers=np.array([0]),
        ends=np.array([0b111]),
        buffered=np.array(buffered),
        above_ns=nothing,
        here_ns=nothing,
        below_ns=nothing,
        waits_ns=np.zeros((1, 8), np.int64),
    )
    read = np.array([[0], [5], [7]])
    readers = Table(np.arange(4), none.T, nothing, nothing, none, read, none, none)
    assert held_sets(fork, readers, 9, 9, needed)[0b110] == 1
    assert needed == 0 or held_sets(fork, readers, 9, 9, needed - 1)[0b110] == 0


def test_a_message_goes_to_readers_on_other_groups_alone() -> None:
    """Operator 0 takes 3 ns and sends for 14; 20 ns follow behind reader 1, 5 behind reader 2."""
    nothing, none = np.zeros(3, np.int64), np.zeros((3, 1), np.int64)
    fork = Flow(
        makers=np.array([0]),
        ends=np.array([0b111]),
        buffered=nothing,
        above_ns=nothing,
        here_ns=nothing,
        below_ns=np.array([0, 20, 5]),
        waits_ns=np.zeros((1, 8), np.int64),
    )
    sends = Table(np.arange(4), none.T, np.array([3, 0, 0]), nothing, none, none, np.array([[14], [0], [0]]), none)
    assert held_sets(fork, sends, 22, 99, 0)[0b011] == 1  # 3 + 14 + 5
    assert held_sets(fork, sends, 21, 99, 0)[0b011] == 0
    assert held_sets(fork, sends, 36, 99, 0)[0b101] == 0  # 3 + 14 + 20
    assert held_sets(fork, sends, 37, 99, 0)[0b101] == 1


def test_where_choices_are_too_many_a_set_may_be_held_that_is_not() -> None:
    """All 2^10 sums of time and memory are on one line: none is as good as another. Joined ones cost less."""
    rows = [[(1 << at, 0), (0, 1 << at)] for at in range(10)]
    assert 1 << len(rows) > MOST_PAIRS
    assert held_sets(flow(10), table(rows), 512, 512, 511)[-1] == 1
    between = [*rows[:9], [(100, 300)]]  # the first nine take 300 to 350, and 511 less that
    assert held_sets(flow(10), table(between), 450, 450, 511)[-1] == 1
    assert held_sets(flow(10), table(rows), 255, 255, 255)[-1] == 0
    few = [*rows[:9], [(44, 299)]]  # of 511 467 are left; those joined seem to take 361 and 106
    many = [[*[each[0]] * 3, *each[1:]] for each in few]
    assert MOST_STEPS < 4**8
    assert [held_sets(flow(10), table(each), 405, 405, 405)[-1] for each in (few, many)] == [False, True]


def test_rows_without_time_for_their_rounds_are_not_completed() -> None:
    """Each of ten operators has three rows alike. One micro-batch of the first is live at once, two take 9 ns
    each."""
    rows = [[(1, 1)] * 3 for _ in range(10)]
    assert 3 ** len(rows) > MOST_STEPS
    first = np.arange(30) < 3
    staying = idle(10, 30)._replace(
        saved_bytes=6 * first, full=1 * first, runs=2 * first, stay_ns=9 * first, size=first + 1
    )
    for room, held in ((17, False), (18, True)):
        assert held_sets(flow(10), table(rows), 99, room, 10, staying)[-1] == held


def test_operators_are_on_one_device_each_as_wholes() -> None:
    """Three of 6 ns on two devices: two of them are together, which the mean of 9 ns does not know.

    Replicas would have to reduce gradients for 1000 ns.
    """
    problem = chain_problem([2, 2, 2], [4, 4, 4], cluster(2), weights=[1000] * 3)
    bound = time_bound(problem)
    assert (bound.kind, bound.ns, bound.parts["work"]) == ("groups", 12, 9)


def test_all_stages_have_one_micro_batch_size() -> None:
    """Each run takes 20 ns whatever its samples; the second operator's device holds one sample at a time.

    It could run its two samples in 40 ns while the first one runs both in 20, if their sizes could differ.
    """
    problem = chain_problem([10, 10], [10, 10], cluster(2, memory=13), saved=[1, 8], mini_batch=2, pins=ONE)
    (costs,) = problem.profile.costs
    same = tuple(replace(o, forward_s=(10e-9,) * 2, backward_s=(10e-9,) * 2) for o in costs.operators)
    costs = replace(costs, micro_batches=(1, 2), operators=same)
    problem = replace(problem, profile=replace(problem.profile, costs=(costs,)))
    bound = time_bound(problem)
    assert bound.ns == 40
    alone = Plan(stages=tuple(Stage(operators=(f"op{at}",), devices=(at,), micro_batch=1) for at in range(2)))
    assert fastest(problem, [alone]) == 40


def test_what_crosses_between_groups_needs_buffers() -> None:
    """Both on one device do not fit: 2 x 3 x 5 bytes of state. Apart they need 15 and 2 x 6 for the tensor."""
    problem = chain_problem(
        [3, 3], [3, 3], cluster(2, memory=27), weights=[5, 5], activations=[0, 6, 0], saved=[0, 0]
    )
    assert time_bound(problem).ns == 6
    less = replace(problem, cluster=cluster(2, memory=26))
    assert groups_proof(less, 0, time_bound(problem).ns) is None  # no plan fits at all, so nothing is said
    pinned = replace(less, pins=ONE)
    tables = GroupTables(pinned)
    alone = [group for case in tables.cases(1) for group in case.groups if group.devices == 1]
    assert {group.cuts[0][0][:2] for group in alone} == {(12, 12)}


def test_tables_of_a_group() -> None:
    """Runs of 3 and 4 ns a sample, 12 bytes of weights, 5 saved a sample, tensors of 2 bytes; mini-batch 6."""
    problem = chain_problem(
        [3, 3], [4, 4], cluster(2), activations=[0, 2, 0], weights=[12, 12], saved=[5, 5], mini_batch=6
    )
    found = {
        (case.copies, case.micro_batch, group.devices, group.turns): group
        for case in GroupTables(problem).cases(1)
        for group in case.groups
        if not case.alone or case.copies == 2
    }
    # Six samples on one device; two replicas that share micro-batches of two run three of one sample each, and
    # reduce 12 bytes: 2 / 2 x 12 ns less 1. Two devices of one replica would run both samples, which takes 42 ns.
    # Where the forward runs again, it is a part of the backward.
    assert found[1, 2, 1, 1].rows[0] == ((42, 42, 6, 8, 36, 10, 1, 0), (60, 60, 6, 14, 36, 10, 0, 0))
    shared, _, whole, _ = found[1, 2, 2, 1].rows[0]
    assert (shared, whole) == ((21 + 11, 21, 3, 4, 36, 5, 1, 0), (42, 42, 6, 8, 36, 10, 1, 1))
    # In turn each runs whole micro-batches: of a pattern one and a half of three of them, of an order two.
    assert found[1, 2, 2, 2].rows[0][0] == (21 + 11, 21, 6, 8, 36, 10, 1, 0)
    odd = next(case for case in GroupTables(replace(problem, mini_batch=3)).cases(1) if not case.alone)
    assert (odd.copies, odd.pattern, odd.micro_batch, odd.groups[2].turns) == (1, False, 0, 2)
    assert odd.groups[2].rows[0][0] == (14 + 11, 14, 3, 4, 36, 5, 1, 0)
    assert odd.groups[2].sizes[0] == 1
    # A message and its gradient: of two samples, of one of them, of whole micro-batches.
    sizes = {key: group.cuts[0][0][: READ_BYTES + 1] for key, group in found.items()}
    assert sizes[1, 2, 1, 1] == (8, 8)
    assert sizes[1, 2, 2, 1] == (4, 4)
    assert sizes[1, 2, 2, 2] == (8, 8)
    # Of an order of three samples on one device, and of one sample at the other end; each byte takes 1 ns.
    order = found[1, 0, 1, 1]
    assert order.cuts[order.sizes.index(3)][0] == (8, 8, 8, 8)
    # A replica of two devices sends and receives on both: 8 bytes in 4 ns, of the reader's one sample 2 in 1 ns.
    pair = found[1, 0, 2, 1]
    wide = {pair.cuts[row[CUT]][0] for row in pair.rows[1] if row[WHOLE] == 42 and row[SAVED] == 15}
    assert wide == {(8, 8, 3 + 1, 1 + 3)}
    # Where gradients are three times as large: 3 x 2 + 6 bytes, and 2 + 3 x 6.
    graph = problem.profile.graph
    tensors = tuple(replace(each, gradient_bytes_per_sample=6.0) for each in graph.tensors)
    larger = replace(problem, profile=replace(problem.profile, graph=replace(graph, tensors=tensors)))
    other = next(case for case in GroupTables(larger).cases(1) if case.copies == 1).groups[0]
    assert other.cuts[other.sizes.index(3)][0] == (12, 20, 12, 20)
    assert (2, 3, 2, 1) not in found
    assert (2, 3, 1, 1) in found


def test_all_samples_that_a_later_operator_has_are_live_in_those_before() -> None:
    """Of four samples the second of three operators has two at once, the last one. They are live in the first too,
    in two micro-batches of one, of 5 bytes each, or one of two. One that recomputes holds one micro-batch.
    """
    problem = chain_problem(
        [3] * 3, [4] * 3, cluster(1), activations=[0, 2, 2, 0], saved=[5] * 3, mini_batch=4, mode="sync"
    )
    tables = GroupTables(problem)
    (case,) = tables.cases(2)
    looked_at = CaseTables(Graph(tables, 2), case)
    box = BoxTables(looked_at, Box((1, 2, 1), (2, 4, 1)))
    assert box._live.tolist() == [2, 2, 1]
    columns = looked_at.operator, looked_at.size, looked_at.rows[FULL], box._held_bytes
    found = list(zip(*(column.tolist() for column in columns), strict=True))
    outside = tables.free_bytes + 1
    first, second = {1: 10, 2: 10, 4: outside}, {1: outside, 2: 10, 4: 20}
    assert {(size, full): bytes_ for one, size, full, bytes_ in found if one == 0 and full} == {
        (size, 1): bytes_ for size, bytes_ in first.items()
    }
    assert {(one, size, full): bytes_ for one, size, full, bytes_ in found if (one, full) in ((0, 0), (1, 1))} == {
        (0, 1, 0): 5,
        (0, 2, 0): 10,
        **{(1, size, 1): bytes_ for size, bytes_ in second.items()},
    }


def test_in_turn_a_replica_has_every_other_micro_batch_live() -> None:
    problem = chain_problem([3, 3], [4, 4], cluster(2), saved=[5, 5], mini_batch=4, mode="sync")
    tables = GroupTables(problem)
    case = next(case for case in tables.cases(1) if (case.copies, case.alone) == (1, False))
    looked_at = CaseTables(Graph(tables, 1), case)
    held = BoxTables(looked_at, Box((1, 4), (1, 4)))._held_bytes
    first = (looked_at.turns == 2) & (looked_at.operator == 0) & (looked_at.size == 1)
    assert set(held[first & (looked_at.rows[FULL] == 1)].tolist()) == {10}  # micro-batches 0 and 2 of four
    assert set(held[first & (looked_at.rows[FULL] == 0)].tolist()) == {5}


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(("memory", "expected"), [(5, 120), (10, 80), (15, 80)])
def test_where_few_are_live_at_once_a_mini_batch_takes_several_rounds(
    mode: RegimeMode, memory: int, expected: int
) -> None:
    """Three samples of two operators, 10 ns each way, 5 bytes a sample. One stays 40 ns in the first operator.

    With room for one at a time 3 x 40 ns; for two two rounds of 40 ns, as short as working without a pause.
    """
    problem = chain_problem(
        [10, 10], [10, 10], cluster(2, memory=memory), saved=[5, 0], mini_batch=3, mode=mode,
        pins=Pins(data_parallel=1, micro_batch=1, recompute="none"),
    )  # fmt: skip
    proof = groups_proof(problem, 0, 1)
    assert proof is not None
    stages = tuple(Stage(operators=(f"op{at}",), devices=(at,), micro_batch=1) for at in range(2))
    if mode == "sync":
        assert proof.claimed_ns == expected
        plan = Plan(stages=stages)
        lanes = (
            Lane(devices=(0,), stage=(0,) * 6, micro_batch=(0, 0, 1, 1, 2, 2), kinds="FBFBFB"),
            Lane(devices=(1,), stage=(1,) * 6, micro_batch=(0, 0, 1, 1, 2, 2), kinds="FBFBFB"),
        )
        if memory == 5:
            schedule = FiniteSchedule(lanes=lanes)
            assert check_schedule(problem, plan, schedule).status == "valid"
            assert simulate(problem, plan, schedule).total_ns == expected
    else:
        assert proof.claimed_ns == {5: 120, 10: 60, 15: 60}[memory]


def test_a_pattern_has_as_many_live_as_come_while_one_stays() -> None:
    """Of a pattern alone: 40 ns for each sample with room for one, 20 ns with room for two."""
    problem = chain_problem(
        [10, 10], [10, 10], cluster(2, memory=5), saved=[5, 0], mini_batch=3,
        pins=Pins(data_parallel=1, micro_batch=1, recompute="none"),
    )  # fmt: skip
    for memory, expected in ((5, 120), (9, 120), (10, 60)):
        tables = GroupTables(replace(problem, cluster=cluster(2, memory=memory)))
        division = Division(tables, 1, 0)
        found = [tree.raised(1, 999, division._looked_at) for tree in division._trees if tree.case.case.pattern]
        assert min(found) == expected


def test_one_micro_batch_waits_for_all_of_its_samples() -> None:
    """Two samples at once in the first and the last operator, of 10 ns each way; one in the second, of 4 ns.

    Between forward and backward of the first one the second runs twice, then the last one both for 40 ns, and the
    gradient of one sample comes back: 4 + 4 + 40 + 4 ns.
    """
    problem = chain_problem([10, 4, 10], [10, 4, 10], cluster(1), mini_batch=2, mode="sync")
    tables = GroupTables(problem)
    (case,) = tables.cases(2)
    box = BoxTables(CaseTables(Graph(tables, 2), case), Box((2, 1, 2), (2, 1, 2)))
    assert box._between_ns(2).tolist() == [4 + 4 + 40 + 4, 40, 0]
    assert box._start_ns.tolist() == [0, 20, 20 + 8]
    assert box._end_ns.tolist() == [0, 20, 20 + 4]


def test_devices_without_the_first_operator_wait_for_it_and_for_its_last_input_gradient() -> None:
    tables = GroupTables(chain_problem([3, 5], [7, 2], cluster(2)))
    graph = Graph(tables, 1)
    found = {case.pattern: case for case in tables.cases(1) if case.alone and case.copies == 1}
    for pattern, waits in ((True, [[0, 0, 0, 0]]), (False, [[0, 0, 3, 0], [0, 0, 3 + 7, 0]])):
        case = CaseTables(graph, found[pattern])
        assert BoxTables(case, case.whole)._flow.waits_ns.tolist() == waits


def test_a_device_with_the_first_operator_may_be_busy_to_the_end() -> None:
    """Eight samples of 200 ns on the first device; those of 100 ns on the second one are done meanwhile.

    The last sample is back before the first device has done the backward of the one before it.
    """
    problem = chain_problem(
        [100, 50],
        [100, 50],
        cluster(2),
        mini_batch=8,
        mode="sync",
        pins=Pins(data_parallel=1, micro_batch=1),
    )
    stages = tuple(Stage(operators=(f"op{at}",), devices=(at,), micro_batch=1) for at in range(2))
    schedule = services().schedule("1f1b", problem, Plan(stages=stages))
    taken = metrics(problem, Plan(stages=stages), simulate(problem, Plan(stages=stages), schedule)).seconds
    assert (round(taken * 1e9), time_bound(problem).ns) == (1600, 1600)


def divided(problem: Problem, time_ns: int) -> list[Kind]:
    """The kinds of plans that are possible in that time."""
    tables = GroupTables(problem)
    division = Division(tables, tables.lasts[0], 0)
    return [
        Kind(case.copies, case.alone, case.pattern, case.micro_batch)
        for case, tree in zip(division.cases, division._trees, strict=True)
        if tree.raised(time_ns, time_ns + 1, division._looked_at) == time_ns
    ]


def test_an_order_has_its_waits_beside_its_work() -> None:
    """Two samples. The second device works 2 x 40 ns between a forward and an input gradient of 10 ns: 100.

    If each has one operator, that is. It is beyond the way down and back, 60 ns. Weights keep the operators apart,
    and replicas from paying.
    """
    problem = chain_problem([10, 20], [10, 20], cluster(2, memory=3100), weights=[1000] * 2, mini_batch=2)
    order = Kind(copies=1, alone=True, pattern=False, micro_batch=0)
    assert order not in divided(problem, 99)
    assert order in divided(problem, 100)


def test_a_sample_crosses_between_groups_and_comes_back() -> None:
    """20 and 40 ns and a tensor of 15 bytes there and back: 90 ns on two devices, which memory asks for."""
    problem = chain_problem(
        [10, 20],
        [10, 20],
        cluster(2, memory=3100),
        activations=[0, 15, 0],
        weights=[1500] * 2,
        mode="sync",
        pins=ONE,
    )
    bound = time_bound(problem)
    assert (bound.kind, bound.ns, bound.parts["path"]) == ("groups", 90, 60)
    stages = tuple(Stage(operators=(f"op{at}",), devices=(at,), micro_batch=1) for at in range(2))
    schedule = services().schedule("greedy", problem, Plan(stages=stages))
    assert (
        round(
            metrics(problem, Plan(stages=stages), simulate(problem, Plan(stages=stages), schedule)).seconds * 1e9
        )
        == 90
    )


def relaying(problem: Problem) -> tuple[Problem, Plan]:
    """The first operator of three is fast in one run of four samples alone. The second, beside it, passes on what
    the third reads, in micro-batches of one sample.
    """
    (costs,) = problem.profile.costs
    each_ns = ((1000, 1000), (1, 4), (10, 40))
    operators = tuple(
        replace(costs_of, forward_s=seconds, backward_s=seconds)
        for costs_of, (one, four) in zip(costs.operators, each_ns, strict=True)
        for seconds in [(one / 1e9, four / 1e9)]
    )
    profile = replace(problem.profile, costs=(replace(costs, micro_batches=(1, 4), operators=operators),))
    stages = tuple(
        Stage(operators=(f"op{at}",), devices=(device,), micro_batch=size)
        for at, (device, size) in enumerate([(0, 4), (0, 1), (1, 1)])
    )
    return replace(problem, profile=profile), Plan(stages=stages, placement="listed", routing="relay")


def test_a_stage_between_passes_on_in_micro_batches_of_its_own() -> None:
    """1000 bytes a sample to the third operator: 4000 ns in one message, 1000 ns in four beside each other."""
    problem, plan = relaying(
        dag_problem(
            [1] * 3, [1] * 3, [(0, (1,), 0), (0, (2,), 1000), (1, (2,), 0)],
            cluster(2, memory=210_000, link_mode="delay"), weights=[50_000, 50_000, 100_000], mini_batch=4,
            micro_batches=(1, 4), pins=ONE,
        )
    )  # fmt: skip
    alone, beside = (0, *[1] * 8, 0), [0, 1, 2, 3]
    schedule = FiniteSchedule(
        lanes=(
            Lane(devices=(0,), stage=alone, micro_batch=(0, *beside, *beside, 0), kinds="FFFFFBBBBB"),
            Lane(devices=(1,), stage=(2,) * 8, micro_batch=tuple(sorted(2 * beside)), kinds="FB" * 4),
        )
    )
    assert check_schedule(problem, plan, schedule).status == "valid"
    taken_ns = simulate(problem, plan, schedule).total_ns
    bound = time_bound(problem)
    assert (bound.kind, bound.ns, taken_ns) == ("groups", 4020, 4082)
    assert simulate(problem, replace(plan, routing="direct"), schedule).total_ns == 7080
    alone_on_its_device = replace(problem, pins=replace(ONE, virtual_stages=1))
    assert time_bound(alone_on_its_device).ns == 5020


def test_a_buffer_of_a_tensor_that_is_passed_on_is_the_smallest_of_its_group() -> None:
    """Of two replicas that share two samples one each, of one replica of two devices both; and in sync only where
    all that read the tensor are before the last operator.
    """
    tensors = [(0, (1,), 0), (0, (2, 3), 5), (1, (2,), 0)]
    problem = dag_problem([1] * 4, [1] * 4, tensors, cluster(4), mini_batch=2)
    for mode, last, expected in (("sync", 2, 0), ("sync", 3, 0), ("async", 2, 10), ("async", 3, 10)):
        tables = GroupTables(replace(problem, regime=replace(problem.regime, mode=mode)))
        found = {
            cut[1][MADE_BYTES]
            for case in tables.cases(last)
            if case.copies == 1 and not case.pattern
            for group in case.groups
            if (group.devices, group.turns) == (2, 1)
            for cut in group.cuts
        }
        assert found == {expected}, (mode, last)
    fewer = replace(
        problem, profile=dag_problem([1] * 3, [1] * 3, [(0, (1,), 0), (0, (2,), 5)], cluster(4)).profile
    )
    assert {
        cut[1][MADE_BYTES]
        for case in GroupTables(fewer).cases(2)
        if case.copies == 1
        for group in case.groups
        if (group.devices, group.turns) == (2, 1)
        for cut in group.cuts
    } == {10}


def test_no_replicas_of_the_pinned_size_no_several_pipelines() -> None:
    """All samples on one replica are pinned: nothing is said of several pipelines, and so nothing of one."""
    for pins in (Pins(micro_batch_size=2), Pins(micro_batch=2, micro_batch_size=2)):
        problem = chain_problem(
            [10, 10], [10, 10], cluster(2, memory=3000), activations=[0, 50, 0], weights=[1000, 1000],
            saved=[20, 20], mode="sync", mini_batch=2, pins=pins,
        )  # fmt: skip
        assert (time_bound(problem).kind, time_bound(problem).ns) == ("path", 80)


def test_both_ends_of_a_fork_save_at_their_own_instants() -> None:
    """0 -> 1 and 0 -> 2: a device with both readers never has to hold both."""
    tensors = [(0, (1, 2), 0)]
    problem = dag_problem(
        [4, 4, 4], [4, 4, 4], tensors, cluster(2, memory=9), saved=[1, 8, 8], mode="async", pins=ONE
    )
    stages = (
        Stage(operators=("op0",), devices=(0,), micro_batch=1),
        Stage(operators=("op1",), devices=(1,), micro_batch=1),
        Stage(operators=("op2",), devices=(1,), micro_batch=1),
    )
    assert time_bound(problem).ns <= fastest(problem, [Plan(stages=stages, placement="listed")]) == 16


def test_sizes_are_divided_only_as_long_as_it_does_not_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undivided, the bound is lower, and still one."""
    problem = tight(0, "sync", operators=4, devices=2)
    divided = groups_proof(problem, 0, 10_000_000)
    monkeypatch.setattr(groups, "MOST_LOOKED_AT", 0)
    whole = groups_proof(problem, 0, 10_000_000)
    assert divided is not None
    assert whole is not None
    assert any(divided.splits)
    assert not any(whole.splits)
    assert 10_000_000 < whole.claimed_ns < divided.claimed_ns


def test_problems_with_many_operators_have_no_groups() -> None:
    tight = cluster(2, memory=40)
    many = chain_problem([2] * (MOST_OPERATORS + 1), [4] * (MOST_OPERATORS + 1), tight, pins=ONE)
    assert "groups" not in time_bound(many).parts


def test_with_a_flush_several_pipelines_on_the_same_devices_are_no_faster() -> None:
    """Three operators of 6 ns, two devices, two samples: one pipeline has two operators on a device, for 24 ns.

    Two pipelines have every operator on both, for 18 ns and an all-reduce of the weights.
    """
    for weight, expected in ((10, "groups"), (0, "work")):
        problem = chain_problem(
            [2] * 3, [4] * 3, cluster(2), weights=[weight] * 3, mini_batch=2, mode="sync", pins=Pins(micro_batch=1)
        )
        assert several_pipelines(problem)
        bound = time_bound(problem)
        assert bound.kind == expected, bound
        proof = groups_proof(problem, 0, max(ns for kind, ns in bound.parts.items() if kind != "groups"))
        assert (proof is None) == (weight == 0)
        assert proof is None or (proof.several is not None and proof.several.claimed_ns >= proof.claimed_ns)
    assert not several_pipelines(replace(problem, pins=ONE))
    assert not several_pipelines(replace(problem, mini_batch=1))
    assert not several_pipelines(replace(problem, regime=replace(problem.regime, mode="async")))


def test_where_nothing_is_proven_of_several_pipelines_nothing_is_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = chain_problem([2] * 3, [4] * 3, cluster(2), weights=[10] * 3, mini_batch=2, mode="sync")
    assert groups_proof(problem, 0, 18) is not None
    monkeypatch.setattr(groups, "replicated_proof", lambda *_: None)
    assert groups_proof(problem, 0, 18) is None


def test_where_copies_of_all_state_fit_nowhere_several_pipelines_are_no_matter() -> None:
    """Each operator's state is most of what a device has: two of each do not fit. Gradients take no time."""
    fast = cluster(2, memory=27, bandwidth=1e18)
    problem = chain_problem([2] * 2, [4] * 2, fast, weights=[10] * 2, mini_batch=2, mode="sync")
    proof = groups_proof(problem, 0, 1)
    assert proof is not None
    assert proof.several is not None
    assert (
        proof.several.claimed_ns == proof.claimed_ns == 18
    )  # 2 x 6, and a forward and an input gradient of 2 + 4


def test_a_constant_may_be_on_every_group() -> None:
    problem = chain_problem([0, 2, 2], [0, 4, 4], cluster(2), activations=[0, 9, 1, 0], pins=ONE)
    graph = problem.profile.graph
    first = replace(graph.operators[0], constant=True)
    constant = replace(graph, operators=(first, *graph.operators[1:]))
    problem = replace(problem, profile=replace(problem.profile, graph=constant))
    tables = GroupTables(problem)
    assert tables.operators == (1, 2)
    every = [cut for case in tables.cases(2) for group in case.groups for cut in group.cuts]
    assert {cut[0] for cut in every} == {(0, 0, 0, 0)}
    assert {cut[1][MADE_BYTES] for cut in every} == {2}
    assert time_bound(problem).ns == 6


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(), st.booleans(), st.randoms(use_true_random=False))
def test_no_plan_without_a_flush_that_just_fits_is_below_the_bound(
    problem: Problem, overhead: bool, random: Random
) -> None:
    """Patterns and orders; replicas in turn that are more than there are micro-batches, too."""
    problem = replace(problem, regime=replace(problem.regime, mode="async"))
    if overhead:
        problem = with_overhead(problem)
    every = list(islice(plans(problem, recompute=problem.cluster.size < 3), 3000))
    for plan in random.sample(every, min(4, len(every))):
        for scheduler in ("1f1b*", "1f1b-rr", "periodic-bnb", "greedy"):
            try:
                schedule = services().schedule(scheduler, problem, plan)
            except PipebenchError:
                continue
            verdict = check_schedule(problem, plan, schedule)
            if verdict.status == "valid":
                fitting = with_memory(problem, plan, max(1, *verdict.peak_bytes.values()))
                seconds = metrics(fitting, plan, simulate(fitting, plan, schedule)).seconds
                bound = time_bound(fitting)
                assert bound.ns <= round(seconds * 1e9), (scheduler, plan, bound)


@pytest.mark.parametrize("devices", [1, 2, 3])
def test_the_time_that_is_claimed_is_the_first_that_is_not_ruled_out(devices: int) -> None:
    problem = chain_problem([3, 5, 4], [6, 5, 2], cluster(devices, memory=60), weights=[2, 3, 4], saved=[3, 1, 2])
    every_ns = every_stage_ns(problem)
    proof = groups_proof(problem, every_ns, 1)
    assert proof is not None
    assert groups_proof(problem, every_ns, proof.claimed_ns) is None
    again = groups_proof(problem, every_ns, proof.claimed_ns - 1)
    assert again is not None
    assert again.claimed_ns == proof.claimed_ns


@st.composite
def tight_graphs(draw: st.DrawFn, most: int = 4) -> Problem:
    """Two to four operators on one to three devices, on which memory is short."""
    size = draw(st.integers(2, most))
    pairs = [(one, other) for one in range(size) for other in range(one + 1, size)]
    edges = sorted(draw(st.sets(st.sampled_from(pairs), max_size=4)))
    work, held = (st.lists(st.integers(0, most), min_size=size, max_size=size) for most in (20, 9))
    return dag_problem(
        draw(work), draw(work), [(one, (other,), draw(st.integers(0, 4))) for one, other in edges],
        cluster(draw(st.integers(1, 3)), memory=draw(st.sampled_from([30, 45, 60, 90, 10**6]))),
        weights=draw(held), saved=draw(held), mini_batch=draw(st.sampled_from([1, 2, 4])),
        micro_batches=draw(st.sampled_from([(1,), (1, 2), (1, 2, 4)])),
        mode=draw(st.sampled_from(["sync", "async"])),
    )  # fmt: skip


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(tight_graphs(most=3))
def test_it_is_what_the_lemmas_say(problem: Problem) -> None:
    plain, tables = PlainGroups(problem), GroupTables(problem)
    divisions = [Division(tables, last, 0) for last in tables.lasts]
    claimed = max(division.raised(1) for division in divisions)
    if claimed == 1:
        assert plain.possible(1) or not plain.possible(900)
        return
    assert plain.possible(claimed) or not plain.possible(900)
    assert not plain.possible(claimed - 1)
