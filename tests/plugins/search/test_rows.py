"""Plans of stages in a row to start from, against every such plan."""

import random
from collections.abc import Iterator
from itertools import combinations, pairwise, product

import pytest
from msgspec.structs import replace

from pipebench.algorithms.orders.tables import ANY, Tables
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.domain.recomputation import Recompute
from pipebench_search import starts
from pipebench_search.descent import LocalSearch
from pipebench_search.drafts.draft import Draft, Drafting
from pipebench_search.drafts.rows import PACES, SLOWEST, rows_to_start_from
from pipebench_search.incumbent import Candidate
from pipebench_search.plugin import SearchOptions
from pipebench_search.score import Scored, Scorer
from pipebench_search.starts import Starts
from tests.builders import chain_problem, cluster
from tests.plugins.running import services
from tests.plugins.search.test_search import context

STEP = SLOWEST ** (1 / (PACES - 1))
"""From one period that is tried to the next one."""
WAYS: tuple[Recompute, ...] = ("none", "stage")


def tight(number: int, mode: RegimeMode) -> Problem:
    """Six operators on three devices: two of them fit on one with some micro-batches."""
    drawn = random.Random(number)
    times, saved = [drawn.randint(10, 90) for _ in range(6)], [drawn.randint(10, 90) for _ in range(6)]
    weights = [drawn.randint(0, 40) for _ in range(6)]
    return chain_problem(
        times,
        [2 * ns for ns in times],
        cluster(3, memory=drawn.randint(400, 900), bandwidth=1e9),
        activations=[drawn.randint(10, 90) for _ in range(7)],
        weights=weights,
        saved=saved,
        mode=mode,
        mini_batch=10,
        pins=Pins(micro_batch=1, data_parallel=1),
    )


def every_row(problem: Problem) -> Iterator[Plan]:
    """Every cut into stages of consecutive operators, each on one device, recomputing or not."""
    names = [operator.name for operator in problem.profile.graph.operators]
    for count in range(1, problem.cluster.size + 1):
        for inner in combinations(range(1, len(names)), count - 1):
            runs = list(pairwise((0, *inner, len(names))))
            for ways in product(WAYS, repeat=count):
                stages = (
                    Stage(operators=tuple(names[a:b]), devices=(at,), micro_batch=1, recompute=way)
                    for at, ((a, b), way) in enumerate(zip(runs, ways, strict=True))
                )
                yield Plan(stages=tuple(stages))


def scored(problem: Problem, plans: Iterator[Plan]) -> list[Scored]:
    scorer = Scorer(problem, services().context(services().planner("local-search")))
    found = (scorer.score(plan) for plan in plans if scorer.permitted(plan))
    return [each for each in found if each is not None]


def best_ns(problem: Problem, plans: Iterator[Plan]) -> int | None:
    return min((each.ns for each in scored(problem, plans)), default=None)


def rows(problem: Problem) -> Iterator[Plan]:
    drafting = Drafting(problem)
    sizes = (1,) if problem.pins.micro_batch else (1, 2, 5, 10)
    for draft in rows_to_start_from(drafting, sizes, lambda: False):
        made = drafting.plan_of(draft)
        assert made is not None
        yield made


@pytest.mark.parametrize("number", range(8))
def test_no_row_is_faster_than_a_step_in_async(number: int) -> None:
    problem = tight(number, "async")
    least = best_ns(problem, every_row(problem))
    found = best_ns(problem, rows(problem))
    assert (found is None) == (least is None)
    assert found is None or least is None or found <= STEP * least


@pytest.mark.parametrize(("waits", "most"), [(False, 1.12), (True, 1.13)])
def test_hardly_any_row_is_faster_in_sync(monkeypatch: pytest.MonkeyPatch, waits: bool, most: float) -> None:
    """The estimate is that of forwards and backwards in turn; other orders may be faster.

    waits: whether some orders have more in flight than memory holds, so that forwards wait. Rows that are kept
    have room for all that they have in flight; of one problem the fastest takes 11 % less than these.
    """
    if not waits:
        monkeypatch.setattr(Tables, "room", property(lambda self: [ANY] * len(self.held)))
    ratios = []
    for number in range(8):
        problem = tight(number, "sync")
        least, found = best_ns(problem, every_row(problem)), best_ns(problem, rows(problem))
        assert (found is None) == (least is None)
        ratios.append(1.0 if found is None or least is None else found / least)
    assert sorted(ratios)[len(ratios) // 2] == 1.0
    assert max(ratios) < most


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_rows_with_replicas_are_plans(mode: RegimeMode) -> None:
    """Where degrees and micro-batches are free, and memory is."""
    problem = tight(1, mode)
    free = replace(problem, pins=Pins(), cluster=cluster(3, memory=10**6, bandwidth=5e9))
    found = [each.plan for each in scored(free, rows(free))]
    assert any(stage.data_parallel > 1 for each in found for stage in each.stages)
    assert len({stage.micro_batch for each in found for stage in each.stages}) > 1


def test_nothing_is_said_of_problems_that_are_too_large() -> None:
    problem = chain_problem([1] * 600, [1] * 600, cluster(8), mode="sync", mini_batch=1)
    assert list(rows(problem)) == []


@pytest.mark.parametrize(("near", "begun"), [(starts.NEAR, True), (0.0, False)])
def test_rows_that_no_order_makes_nearly_as_fast_as_the_best_plan_are_not_begun_with(
    near: float, begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = chain_problem([3, 1, 4, 1, 5, 9], [6, 2, 8, 2, 10, 18], cluster(3), mode="sync", mini_batch=6)
    begin: list[str] = []

    def noted(_: Starts, draft: Draft, source: str, *given: object) -> None:
        begin.append(source)

    search = LocalSearch(context(), Scorer(problem, context()), 1, SearchOptions(steps=0))
    search._starts.even_stages(1, [])
    assert search.known.best is not None
    monkeypatch.setattr(starts, "NEAR", near)
    monkeypatch.setattr(Starts, "_begin", noted)
    search._starts.stages_in_a_row([])
    assert ("stages in a row" in begin) == begun


def test_of_even_stages_one_is_scored_where_half_of_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = chain_problem([3, 1, 4, 1, 5, 9], [6, 2, 8, 2, 10, 18], cluster(3), mode="sync", mini_batch=6)
    begun: list[int] = []
    for half_over in (False, True):
        search = LocalSearch(context(), Scorer(problem, context()), 1, SearchOptions(steps=0))
        monkeypatch.setattr(search.known, "late", lambda share=1.0, over=half_over: over and share < 1.0)
        found: list[Candidate] = []
        search._starts.even_stages(4, found)
        begun.append(len(found))
    assert begun == [4, 1]
