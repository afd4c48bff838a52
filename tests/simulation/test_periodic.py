"""Periodic schedules: measured periods against closed forms and a plain-Python recursion."""

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.one_f_one_b_star import start_times
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from pipebench.simulation.step_time import mini_batch_s
from pipebench.simulation.tasks import Deadlock, InvalidSchedule
from tests.builders import chain_problem, cluster, dag_problem, stages_plan


def chain(forward: list[int], backward: list[int], cuts: list[int], mode: str = "half") -> tuple[Problem, Plan]:
    count = len(forward)
    problem = chain_problem(
        forward,
        backward,
        cluster(count, link_mode=mode),
        activations=[0, *cuts, 0],
        saved=[1] * count,
        mini_batch=8,
    )
    return problem, stages_plan([[stage] for stage in range(count)])


def pattern(forward: list[int], backward: list[int], cuts: list[int], period: int) -> PeriodicSchedule:
    """1F1B* of a chain at this period; cuts: one-way transfer times."""
    count = len(forward)
    items = [0] * (2 * count - 1)
    ahead, back = list(items), list(items)
    ahead[::2], ahead[1::2], back[::2], back[1::2] = forward, cuts, backward, cuts
    f, b = start_times(np.array(ahead), np.array(back), period)
    stages, hops = range(count), range(count - 1)
    starts = [*f[::2], *b[::2]]
    moves = [*f[1::2], *b[1::2]]
    return PeriodicSchedule(
        period_ns=period,
        stage=(*stages, *stages),
        kinds="F" * count + "B" * count,
        start_ns=tuple(start % period for start in starts),
        shift=tuple(start // period for start in starts),
        source=(*hops, *(hop + 1 for hop in hops)),
        target=(*(hop + 1 for hop in hops), *hops),
        transfer_kinds="F" * (count - 1) + "B" * (count - 1),
        transfer_start_ns=tuple(start % period for start in moves),
        transfer_shift=tuple(start // period for start in moves),
    )


def ends_by_recursion(schedule: PeriodicSchedule, lengths: dict[tuple[object, ...], int], runs: int) -> list[int]:
    """End of each micro-batch: every lane and half-duplex link in pattern order, each entry as soon as it can."""
    last = max(schedule.stage)
    entries: list[tuple[int, tuple[object, ...]]] = []
    for stage, kind, start, shift in zip(
        schedule.stage, schedule.kinds, schedule.start_ns, schedule.shift, strict=True
    ):
        entries.append((start + shift * schedule.period_ns, (kind, stage)))
    for source, target, kind, start, shift in zip(
        schedule.source,
        schedule.target,
        schedule.transfer_kinds,
        schedule.transfer_start_ns,
        schedule.transfer_shift,
        strict=True,
    ):
        entries.append((start + shift * schedule.period_ns, (kind, source, target)))
    free: dict[object, int] = {}
    ends: dict[tuple[object, ...], int] = {}
    everything = sorted(
        ((start + i * schedule.period_ns, i, what) for start, what in entries for i in range(runs)),
        key=lambda entry: (entry[0], entry[2][0] == "B", entry[1]),
    )
    for _, i, what in everything:
        kind, where = what[0], what[1]
        if len(what) == 3:
            before = (kind, where)
            resource: object = frozenset(what[1:])
        else:
            resource = where
            if kind == "F":
                before = ("F", where - 1, where)
            else:
                before = ("F", where) if where == last else ("B", where + 1, where)
        start = max(ends.get((*before, i), 0), free.get(resource, 0))
        free[resource] = ends[(*what, i)] = start + lengths[what]
    last_end = [0] * runs
    for key, end in ends.items():
        last_end[key[-1]] = max(last_end[key[-1]], end)
    return last_end


times = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 30), st.integers(1, 12)), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(times, st.integers(0, 100))
def test_periods_equal_the_recursion_and_never_exceed_the_pattern(
    figures: list[tuple[int, int, int]], slack: int
) -> None:
    forward, backward = [f for f, _, _ in figures], [b for _, b, _ in figures]
    cuts = [c for _, _, c in figures[:-1]]
    longest = max([f + b for f, b in zip(forward, backward, strict=True)] + [2 * c for c in cuts])
    total = sum(forward) + sum(backward) + 2 * sum(cuts)
    schedule = pattern(forward, backward, cuts, longest + (total - longest) * slack // 100)
    problem, plan = chain(forward, backward, cuts)
    trace = simulate(problem, plan, schedule)
    lengths: dict[tuple[object, ...], int] = {("F", s): f for s, f in enumerate(forward)}
    lengths |= {("B", s): b for s, b in enumerate(backward)}
    lengths |= {("F", s, s + 1): c for s, c in enumerate(cuts)}
    lengths |= {("B", s + 1, s): c for s, c in enumerate(cuts)}
    ends = ends_by_recursion(schedule, lengths, 300)
    # Sixty repetitions hold a whole number of the cycles that chains of five stages have; the last ones lack
    # the competition of those that would follow.
    assert trace.period_ns == -(-(ends[-20] - ends[-80]) // 60)
    assert trace.period_ns <= schedule.period_ns
    last = max(trace.micro_batch)
    assert trace.total_ns == ends_by_recursion(schedule, lengths, last + 1)[-1]


@settings(max_examples=40, deadline=None)
@given(times)
def test_the_fastest_pattern_runs_at_the_pace_of_the_busiest_item(figures: list[tuple[int, int, int]]) -> None:
    forward, backward = [f for f, _, _ in figures], [b for _, b, _ in figures]
    cuts = [c for _, _, c in figures[:-1]]
    longest = max([f + b for f, b in zip(forward, backward, strict=True)] + [2 * c for c in cuts])
    problem, plan = chain(forward, backward, cuts)
    schedule = pattern(forward, backward, cuts, longest)
    trace = simulate(problem, plan, schedule)
    assert trace.period_ns == longest
    measured = metrics(problem, plan, trace)
    assert mini_batch_s(problem, plan, schedule) == measured.seconds
    assert measured.seconds == pytest.approx(8 * longest / 1e9)
    busy = sum(forward) + sum(backward)
    assert measured.bubble == pytest.approx(1 - busy / (longest * len(forward)))


@pytest.mark.parametrize("mode", ["full", "delay"])
def test_a_period_that_is_no_integer_is_rounded_up(mode: str) -> None:
    """Stage 0 is two ahead: two micro-batches pass in 3 + 4 + 2 = 9 ns, both stages, the way there and back."""
    problem, plan = chain([1, 1], [2, 3], [1], mode)
    one_ahead = PeriodicSchedule(
        period_ns=5,
        stage=(0, 1, 0, 1),
        kinds="FFBB",
        start_ns=(0, 2, 2, 3),
        shift=(0, 0, 1, 0),
        source=(0, 1),
        target=(1, 0),
        transfer_kinds="FB",
        transfer_start_ns=(1, 1),
        transfer_shift=(0, 1),
    )
    trace = simulate(problem, plan, one_ahead)
    columns = zip(trace.kinds, trace.stage, trace.end_ns, strict=True)
    done = [end for kind, stage, end in columns if (kind, stage) == ("B", 0)]
    assert {done[i + 2] - done[i] for i in range(8, 14)} == {9}
    assert trace.period_ns == 5


def test_live_micro_batches_equal_the_groups() -> None:
    """MadPipe section 9: at T = u with cuts of C <= u stage i of n keeps 2 (n - i) + 1, here 5, 3, 1."""
    problem, plan = chain([4] * 3, [6] * 3, [2, 2])
    trace = simulate(problem, plan, pattern([4] * 3, [6] * 3, [2, 2], 10))
    buffers = [2 * 2, 4 * 2, 2 * 2]
    assert [t.peak_bytes for t in trace.memory] == [
        live + held for live, held in zip([5, 3, 1], buffers, strict=True)
    ]


@pytest.mark.parametrize("mode", ["full", "delay"])
def test_other_link_modes_are_no_slower(mode: str) -> None:
    forward, backward, cuts = [3, 5, 2], [6, 4, 9], [5, 4]
    schedule = pattern(forward, backward, cuts, 11)
    assert simulate(*chain(forward, backward, cuts, mode), schedule).period_ns == 11


@pytest.mark.parametrize("later", [-3, 2])
def test_where_the_pattern_begins_does_not_matter(later: int) -> None:
    forward, backward, cuts = [3, 5, 2], [6, 4, 9], [5, 4]
    schedule = pattern(forward, backward, cuts, 12)
    moved = msgspec.structs.replace(
        schedule,
        shift=tuple(shift + later for shift in schedule.shift),
        transfer_shift=tuple(shift + later for shift in schedule.transfer_shift),
    )
    problem, plan = chain(forward, backward, cuts)
    assert simulate(problem, plan, moved) == simulate(problem, plan, schedule)


def test_a_pattern_that_needs_millions_of_tasks_is_refused() -> None:
    figures = [3, 4], [5, 6], [2]
    problem, plan = chain(*figures)
    schedule = pattern(*figures, period=20)
    late = msgspec.structs.replace(schedule, shift=(*schedule.shift[:-1], 3_000_000))
    with pytest.raises(InvalidSchedule, match="at most 4000000 run"):
        simulate(problem, plan, late)


def test_operations_of_one_instant_run_along_the_graph() -> None:
    """Stage 1 takes no time, and the pattern lists its backward first."""
    problem, plan = chain([1, 0], [2, 0], [0])
    schedule = PeriodicSchedule(
        period_ns=3, stage=(1, 1, 0, 0), kinds="BFBF", start_ns=(1, 1, 1, 0), shift=(0, 0, 0, 0)
    )
    assert simulate(problem, plan, schedule).period_ns == 3


def test_copies_take_turns_at_the_micro_batches() -> None:
    problem, plan = chain([3], [5], [])
    schedule = PeriodicSchedule(period_ns=8, stage=(0, 0), kinds="FB", start_ns=(0, 3), shift=(0, 0))
    for copies in (1, 2):
        copied = msgspec.structs.replace(plan, copies=copies)
        measured = metrics(problem, copied, simulate(problem, copied, schedule))
        assert measured.seconds == pytest.approx(8 * 8 / copies / 1e9)


def with_ports(problem: Problem, shared: float) -> Problem:
    """The problem with devices that share `shared` bytes/s among all that they send."""
    (level,) = problem.cluster.levels
    level = msgspec.structs.replace(level, shared_bandwidth_bytes_s=shared)
    return msgspec.structs.replace(problem, cluster=msgspec.structs.replace(problem.cluster, levels=(level,)))


def test_the_port_of_the_middle_stage_sets_the_pace() -> None:
    """It sends 10 bytes each way for a micro-batch, on two links, at half a byte/ns: 2 x 20 ns."""
    figures = ([3, 3, 3], [4, 4, 4], [10, 10])
    problem, plan = chain(*figures, "full")
    schedule = pattern(*figures, 20)
    assert simulate(problem, plan, schedule).period_ns <= 20
    assert simulate(with_ports(problem, 0.5e9), plan, schedule).period_ns == 40


@settings(max_examples=40, deadline=None)
@given(times)
def test_a_port_that_is_never_short_changes_nothing(figures: list[tuple[int, int, int]]) -> None:
    """The run settles by itself to the pace that is computed without ports."""
    forward, backward = [f for f, _, _ in figures], [b for _, b, _ in figures]
    cuts = [c for _, _, c in figures[:-1]]
    problem, plan = chain(forward, backward, cuts, "full")
    schedule = pattern(forward, backward, cuts, sum(forward) + sum(backward) + 2 * sum(cuts))
    free = simulate(problem, plan, schedule)
    assert simulate(with_ports(problem, 1e12), plan, schedule).period_ns == free.period_ns


def test_independent_branches_keep_their_own_pace() -> None:
    """Two stages that exchange nothing: the slower one sets the period."""
    problem = dag_problem([1, 2], [2, 5], [], cluster(2), mode="async", mini_batch=4)
    schedule = PeriodicSchedule(
        period_ns=9, stage=(0, 0, 1, 1), kinds="FBFB", start_ns=(0, 1, 0, 2), shift=(0, 0, 0, 0)
    )
    assert simulate(problem, stages_plan([[0], [1]]), schedule).period_ns == 7


def test_what_a_pattern_must_have() -> None:
    problem, plan = chain([1, 1], [2, 2], [1])
    good = pattern([1, 1], [2, 2], [1], 5)
    replace = msgspec.structs.replace
    with pytest.raises(InvalidSchedule, match="B of stage 1 is missing"):
        simulate(problem, plan, replace(good, stage=(0, 1, 0, 0)))
    with pytest.raises(InvalidSchedule, match="lacks the transfer B from stage 1 to stage 0"):
        simulate(
            problem,
            plan,
            replace(
                good, source=(0,), target=(1,), transfer_kinds="F", transfer_start_ns=(1,), transfer_shift=(0,)
            ),
        )
    with pytest.raises(UnsupportedProblem, match="never flushes"):
        simulate(replace(problem, regime=type(problem.regime)(mode="sync")), plan, good)
    mixed = replace(plan, stages=(plan.stages[0], replace(plan.stages[1], micro_batch=2)))
    with pytest.raises(UnsupportedProblem, match="same micro-batch"):
        simulate(problem, mixed, good)


def test_a_pattern_that_runs_against_its_dependencies_deadlocks() -> None:
    problem, plan = chain([1, 1], [2, 2], [1])
    good = pattern([1, 1], [2, 2], [1], 5)
    backward_first = msgspec.structs.replace(good, shift=(4, 4, *good.shift[2:]))
    with pytest.raises(Deadlock):
        simulate(problem, plan, backward_first)
    # The link carries gradient 0 before activation 0.
    link = msgspec.structs.replace(good, transfer_shift=(good.transfer_shift[0] + 9, good.transfer_shift[1]))
    with pytest.raises(Deadlock):
        simulate(problem, plan, link)
