"""Rows of stages that come by every lane several times."""

import itertools
import operator
import time
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.jit import COMPILES
from pipebench.bench.score import judge
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.domain.schedule import FiniteSchedule
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from pipebench_search.drafts.draft import Draft
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.estimates.clock import Clock
from pipebench_search.estimates.guess import Guesses
from pipebench_search.incumbent import Candidate, Incumbent
from pipebench_search.line import cycles
from pipebench_search.line import loops as loops_module
from pipebench_search.line.annealing import Annealing, Row
from pipebench_search.line.cycles import Cycles, compile_kernels
from pipebench_search.line.kernel import annealed, look
from pipebench_search.line.loops import cheapest_cuts, rows_in_loops
from pipebench_search.line.tables import CAP, LANE, WAY, Line
from pipebench_search.plugin import SearchOptions
from pipebench_search.score import LINKED, Scored, Scorer
from tests.bounds.drawn_problems import with_alternatives
from tests.builders import chain_problem, cluster, dag_problem
from tests.plugins.running import services
from tests.plugins.search.line.test_annealing import Run
from tests.plugins.search.test_search import context, found, nanoseconds

OPERATORS, MEMORY_BYTES = 12, 10**6


def even(
    mode: RegimeMode = "sync", *, lanes: int = 4, sent: int = 0, saved: int = 0, pins: Pins | None = None
) -> Problem:
    """Operators that all take as long. sent: bytes of each tensor. saved: by each operator, of a sample."""
    return chain_problem(
        [10] * OPERATORS,
        [20] * OPERATORS,
        cluster(lanes, MEMORY_BYTES),
        activations=[0, *[sent] * (OPERATORS - 1), 0],
        saved=[saved] * OPERATORS,
        mode=mode,
        mini_batch=lanes,
        pins=pins,
    )


def loops(problem: Problem) -> tuple[Line, list[Row]]:
    run = Run(problem)
    line = run.line(run.even)
    assert line is not None
    return line, rows_in_loops(line, Annealing(line, 0), lambda: False)[0]


def lanes_of(row: Row) -> list[int]:
    return [int(lane) for lane in row.stages[:, LANE]]


def test_loops_idle_less_than_a_row() -> None:
    """4 micro-batches, three operators for each of 4 devices: 4 x 90 + 3 x 90 ns in a row, 4 x 90 + 3 x 30 in
    loops if no device waits in between; greedy orders wait a little."""
    _, rows = loops(even())
    row = next(each for each in rows if len(each.stages) == 4)
    assert row.ns == (4 + 3) * 90
    assert lanes_of(rows[0]) == [0, 1, 2, 3] * 3
    assert 4 * 90 + 3 * 30 <= rows[0].ns < 0.8 * row.ns
    assert [each.ns for each in rows] == sorted(each.ns for each in rows)


def test_stages_come_by_to_and_fro_as_well() -> None:
    _, rows = loops(even())
    assert [0, 1, 2, 3, 3, 2, 1, 0] in [lanes_of(each) for each in rows]


def test_each_number_of_stages_is_there_once_each_way() -> None:
    _, rows = loops(even())
    shapes = [(len(each.stages), lanes_of(each)[4:5] == [3]) for each in rows]
    assert len(set(shapes)) == len(shapes)


def test_where_memory_is_short_the_first_stages_recompute() -> None:
    """A device holds three operators or so, and has no room for what these save of all four micro-batches."""
    _, rows = loops(even(saved=MEMORY_BYTES // 10))
    ways = rows[0].stages[:, WAY].tolist()
    assert 0 < sum(ways) < len(ways)
    assert ways == sorted(ways, reverse=True)


def in_order(problem: Problem, line: Line, row: Row) -> tuple[Plan, FiniteSchedule]:
    """The plan of a row and its greedy order, with what the row says of micro-batches in flight."""
    plan = Run(problem).drafting.plan_of(line.draft_of(row.stages))
    assert plan is not None
    size = plan.stages[0].micro_batch
    plan = plan.with_in_flight([int(cap) * size for cap in row.stages[:, CAP]])
    schedule = services().schedule(LINKED, problem, plan)
    assert isinstance(schedule, FiniteSchedule)
    return plan, schedule


def test_where_memory_is_short_and_nothing_recomputes_fewer_are_in_flight() -> None:
    """A device has room for one micro-batch of eight operators, whatever its stages may keep."""

    def most_held(problem: Problem) -> int:
        line, rows = loops(problem)
        found = 0
        for row in rows:
            plan, schedule = in_order(problem, line, row)
            for lane in schedule.lanes:
                sizes = [len(plan.stages[stage].operators) for stage in lane.stage]
                signs = [{"F": 1, "B": -1}[kind] for kind in lane.kinds]
                found = max(found, *itertools.accumulate(map(operator.mul, signs, sizes)))
        return found

    pins = Pins(recompute="none")
    assert most_held(even(pins=pins)) > 8
    assert 4 < most_held(even(saved=MEMORY_BYTES // 8, pins=pins)) <= 8


def test_each_is_a_valid_plan_that_takes_no_longer() -> None:
    problem = even(sent=5, saved=MEMORY_BYTES // 20)
    line, rows = loops(problem)
    assert rows
    for row in rows:
        plan, schedule = in_order(problem, line, row)
        assert judge(problem, plan, schedule).status == "valid"
        simulated_ns = round(metrics(problem, plan, simulate(problem, plan, schedule)).seconds * NS_PER_S)
        assert simulated_ns <= row.ns


def test_stages_further_back_keep_no_more_in_flight() -> None:
    _, rows = loops(even(saved=MEMORY_BYTES // 8, pins=Pins(recompute="none")))
    fewer = [row.stages[:, CAP] for row in rows if row.stages[:, CAP].min() < row.stages[:, CAP].max()]
    assert fewer
    assert all((np.diff(caps) <= 0).all() for caps in fewer)


def test_what_crosses_a_place_is_made_before_it_and_read_from_it_on() -> None:
    """Tensors go from 0 to 1 and 3, from 1 to 2, and from 2 to 3. A byte takes a nanosecond each way."""
    problem = dag_problem(
        [10] * 4, [20] * 4, [(0, (1, 3), 1), (1, (2,), 10), (2, (3,), 100)], cluster(2), mode="sync", mini_batch=2
    )
    run = Run(problem)
    line = run.line(run.even)
    assert line is not None
    assert line.order == (0, 1, 2, 3)
    size = run.even.parts[0].micro_batch
    assert loops_module.crossing_at(line.costs).tolist() == [2 * size * sent for sent in (0, 1, 11, 101, 0)]


@pytest.mark.parametrize("problem", [even(lanes=1), even(pins=Pins(pipeline=4)), even("async")])
def test_on_one_lane_with_pinned_stages_and_without_a_flush_there_are_none(problem: Problem) -> None:
    assert loops(problem)[1] == []


def test_it_ends_with_the_time() -> None:
    run = Run(even())
    line = run.line(run.even)
    assert line is not None
    assert rows_in_loops(line, Annealing(line, 0), lambda: True) == ([], 0)


def test_a_search_begins_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cycles that look at nothing leave what they begin with."""
    monkeypatch.setattr(cycles, "CYCLE", 0)
    problem = even(pins=Pins(data_parallel=1, micro_batch=1))
    fastest = loops(problem)[1][0]
    result = found(problem, context(steps=3))
    assert nanoseconds(result) <= fastest.ns
    assert any("comes from that of stages in loops" in notice for notice in result.notices)


def search(problem: Problem, *, left_s: float | None = None) -> Cycles:
    run, given = Run(problem), context()
    given.deadline_s = None if left_s is None else time.monotonic() + left_s
    scorer = Scorer(problem, given)
    known = Incumbent(given, scorer, 1, SearchOptions(steps=0))
    guesses = Guesses(run.model)
    return Cycles(known, scorer, run.drafting, guesses, Clock(run.model, run.drafting, guesses), Random(0))


def test_even_rows_are_of_all_replicas_and_micro_batches_on_all_devices() -> None:
    problem = with_alternatives(even(lanes=8), 0, 2, OPERATORS)
    run = Run(problem)
    drafts = list(Neighbourhood(run.model, run.drafting).even_rows())
    shapes = {(draft.parts[0].way.tensor_parallel, draft.sizes, draft.parts[0].micro_batch) for draft in drafts}
    assert len(shapes) == len(drafts)
    assert {(degree, len(sizes)) for degree, sizes, _ in shapes} == {(1, 8), (1, 4), (1, 2), (2, 4), (2, 2)}
    assert {micro_batch for _, sizes, micro_batch in shapes if sizes == (2, 2, 2, 2)} == {1, 2}
    for draft in drafts:
        assert sum(draft.sizes) == 8
        assert sorted(op for part in draft.parts for op in part.operators) == list(range(OPERATORS))
        assert draft.parts[0].micro_batch * len(draft.parts) <= problem.mini_batch


def test_loops_are_of_the_rows_that_are_fastest_so() -> None:
    """Two groups of two devices, of which each micro-batch of two samples takes as long as one of a sample on one,
    wait less than four devices in a row do. The row of the plan that there is has loops, too.
    """
    problem = even()
    cycles, run = search(problem), Run(problem)
    scored = cycles._known.score(run.drafting.plan_of(run.even), None)  # type: ignore[arg-type]
    assert scored is not None
    base = Candidate(scored, run.even, "")
    drafts = Neighbourhood(run.model, run.drafting).even_rows()
    others = [draft for draft in drafts if run.drafting.possible(draft)]

    def shape(draft: Draft | None) -> tuple[tuple[int, ...], int]:
        assert draft is not None
        return draft.sizes, draft.parts[0].micro_batch

    assert {shape(each.draft) for each in cycles.in_loops(base, [])} == {shape(run.even)}
    fastest = {shape(draft): cycles.in_loops(Candidate(scored, draft, ""), [])[0].scored.ns for draft in others}
    best = min(fastest, key=fastest.__getitem__)
    made = cycles.in_loops(base, others)
    assert best != shape(run.even)
    assert min(each.scored.ns for each in made) == fastest[best] < fastest[shape(run.even)]
    assert {shape(each.draft) for each in made} >= {best, shape(run.even)}


@pytest.mark.parametrize(("left_s", "begun"), [(None, 8), (1000.0, 8), (0.4, 4)])
def test_where_time_is_short_fewer_are_begun_with(
    left_s: float | None, begun: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[Candidate] = []

    def noted(_: Cycles, start: Candidate, *given: object) -> list[Candidate]:
        starts.append(start)
        return []

    monkeypatch.setattr(Cycles, "one", noted)
    candidates = [Candidate(Scored(None, None, "", ns), None, "") for ns in range(8)]  # type: ignore[arg-type]
    search(even(), left_s=left_s).in_turn(candidates)
    assert starts == candidates[:begun]


def test_looking_for_them_ends_after_its_share_of_the_time() -> None:
    known = search(even(), left_s=1000.0)._known
    assert known.late_after(0.0)()
    assert not known.late_after(0.5)()
    assert not search(even())._known.late_after(0.0)()


def sent(crossing: Sequence[int], ends: Sequence[int]) -> int:
    return sum(crossing[end] for end in ends[:-1])


@given(
    each=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8),
    most=st.integers(1, 30),
)
def test_cheapest_cuts_send_least_of_all(each: list[tuple[int, int]], most: int) -> None:
    places = len(each)
    work = np.concatenate(([0], np.cumsum([one for one, _ in each]))).astype(np.int64)
    crossing = np.array([*(other for _, other in each), 0], np.int64)

    def fits(ends: Sequence[int]) -> bool:
        return all(work[end] - work[begin] <= most for begin, end in itertools.pairwise((0, *ends)))

    every = [
        (*inside, places) for count in range(places) for inside in itertools.combinations(range(1, places), count)
    ]
    possible = [sent(crossing.tolist(), ends) for ends in every if fits(ends)]
    found = tuple(cheapest_cuts(work, crossing, most).tolist())
    if not possible:
        assert found == ()
        return
    assert found in every
    assert fits(found)
    assert sent(crossing.tolist(), found) == min(possible)


@pytest.mark.skipif(not COMPILES, reason="Python runs the kernels")
def test_what_is_compiled_before_a_search_is_all_that_cycles_call() -> None:
    kernels: tuple[Any, ...] = look, annealed, cheapest_cuts
    compile_kernels()
    before = [len(kernel.signatures) for kernel in kernels]
    _, rows = loops(even(sent=5))
    assert rows
    Run(even()).cycle(100)
    assert [len(kernel.signatures) for kernel in kernels] == before
