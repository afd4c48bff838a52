"""Annealing of rows of stages: it finds what descents do not, and is the same from run to run."""

import dataclasses

import numpy as np
import pytest
from msgspec.structs import replace

from pipebench.domain.problem import Problem
from pipebench_search.drafts.draft import Draft, Drafting
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.estimates.guess import Guesses
from pipebench_search.incumbent import ROWS, Incumbent
from pipebench_search.line import annealing
from pipebench_search.line.annealing import Annealing, Row
from pipebench_search.line.tables import Line, line_of
from pipebench_search.plugin import SearchOptions
from pipebench_search.score import CachedCosts, Scorer
from tests.builders import chain_problem, cluster
from tests.plugins.search.test_search import context

UNEVEN = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]


def chain() -> Problem:
    return chain_problem(UNEVEN, [2 * each for each in UNEVEN], cluster(4), mode="sync", mini_batch=8)


class Run:
    """Annealing of a problem from even stages, one on each device."""

    def __init__(self, problem: Problem) -> None:
        self.model, self.drafting = CachedCosts(problem), Drafting(problem)
        devices = problem.cluster.size
        seeds = (seed for seed in Neighbourhood(self.model, self.drafting).seeds() if self.drafting.possible(seed))
        self.even = next(seed for seed in seeds if len(seed.parts) == devices and seed.sizes == (1,) * devices)
        self.looks: list[int] = []

    def line(self, draft: Draft) -> Line | None:
        return line_of(self.model, self.drafting, Guesses(self.model), draft)

    def cycle(self, looks: int, late_after: int = 10**9) -> Row:
        """late_after: so many looks."""
        line = self.line(self.even)
        assert line is not None
        return Annealing(line, 7).cycle(
            line.stages([4] * len(self.even.parts)),
            looks,
            late=lambda: sum(self.looks) >= late_after,
            looked=self.looks.append,
        )


def test_it_finds_a_faster_row() -> None:
    run = Run(chain())
    even = run.cycle(0)
    found = run.cycle(3000)
    assert found.ns < 0.95 * even.ns
    assert sum(run.looks) == 3000


def test_without_a_flush_stages_share_devices_where_no_row_is_as_fast() -> None:
    """Of 4, 2, 4, 2, 4, 2, 4, 2 three runs take 10 at least, three sets of them 8."""
    work = [4, 2] * 4
    problem = chain_problem(work, [2 * each for each in work], cluster(3), mode="async", mini_batch=8)
    run = Run(problem)
    assert run.cycle(0).ns >= 8 * 3 * 10
    assert run.cycle(3000).ns == 8 * 3 * 8


def test_what_takes_no_time_is_no_error() -> None:
    """Messages alone take some: on one device nothing does."""
    problem = chain_problem([0] * 8, [0] * 8, cluster(4), activations=[0, *[9] * 7, 0], mode="sync", mini_batch=8)
    assert Run(problem).cycle(2000).ns == 0


def test_it_ends_with_the_time() -> None:
    run = Run(chain())
    run.cycle(10**9, late_after=50)
    assert 50 <= sum(run.looks) < 10**6


def test_the_same_random_numbers_find_the_same_however_often_the_time_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, other = Run(chain()), Run(chain())
    first = one.cycle(2000)
    monkeypatch.setattr(annealing, "SLICE_S", 0.0)
    second = other.cycle(2000)
    assert len(other.looks) > len(one.looks)
    assert np.array_equal(first.stages, second.stages)
    assert first.ns == second.ns


def halves(draft: Draft, sizes: tuple[int, ...]) -> Draft:
    """The operators of four stages as two."""
    parts = draft.parts
    one = dataclasses.replace(parts[0], operators=(*parts[0].operators, *parts[1].operators))
    other = dataclasses.replace(parts[1], operators=(*parts[2].operators, *parts[3].operators))
    return Draft((one, other), sizes)


def test_idle_devices_are_lanes_unless_replicas_are_pinned() -> None:
    problem = chain()
    run = Run(problem)
    line = run.line(halves(run.even, (1, 1)))
    assert line is not None
    assert line.sizes == (1, 1, 1, 1)
    pinned = replace(problem, cluster=cluster(5), pins=replace(problem.pins, data_parallel=2))
    model = CachedCosts(pinned)
    line = line_of(model, Drafting(pinned), Guesses(model), halves(run.even, (2, 2)))
    assert line is not None
    assert line.sizes == (2, 2)


def test_stages_of_several_degrees_are_no_line() -> None:
    run = Run(chain())
    part = run.even.parts[1]
    way = dataclasses.replace(part.way, tensor_parallel=2)
    assert run.line(run.even) is not None
    assert run.line(run.even.with_part(1, dataclasses.replace(part, way=way))) is None


def test_rows_of_stages_count_as_plans_that_were_scored() -> None:
    """So that a search that only looks ends, too."""
    problem = chain()
    known = Incumbent(context(), Scorer(problem, context()), 1, SearchOptions(steps=1))
    for _ in range(len(UNEVEN)):
        assert not known.over()
        known.look(ROWS, ROWS)
    assert known.spent == len(UNEVEN)
    assert known.over()
