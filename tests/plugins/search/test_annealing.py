"""Annealing by the clock: it keeps to what it may look at, and finds what descents do not."""

import random
from itertools import pairwise

from pipebench.domain.problem import Problem
from pipebench_search.annealing import CLEARLY, Annealing
from pipebench_search.clock import Clock
from pipebench_search.draft import Draft, Drafting
from pipebench_search.guess import Guesses
from pipebench_search.incumbent import LOOKS, Incumbent
from pipebench_search.moves import Neighbourhood
from pipebench_search.plugin import SearchOptions
from pipebench_search.score import CachedCosts, Scorer
from tests.builders import chain_problem, cluster
from tests.plugins.search.test_search import context

UNEVEN = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]


class Run:
    """Annealing of a chain on four devices; `late` after so many looks."""

    def __init__(self, problem: Problem, late_after: int = 10**9) -> None:
        model, self.drafting = CachedCosts(problem), Drafting(problem)
        self.near = Neighbourhood(model, self.drafting)
        self.clock = Clock(model, self.drafting, Guesses(model))
        self.looks = 0
        self.late_after = late_after
        seeds = (seed for seed in self.near.seeds() if self.drafting.possible(seed))
        self.even = next(seed for seed in seeds if len(seed.parts) == 4 and self.clock.shows(seed))

    def cycle(self, looks: int, permitted: bool = True) -> list[tuple[Draft, int]]:
        """Drafts that are handed on, with their ns."""

        def look() -> None:
            self.looks += 1

        annealing = Annealing(
            self.clock,
            self.drafting,
            self.near,
            random.Random(7),
            permitted=lambda _: permitted,
            late=lambda: self.looks >= self.late_after,
            looked=look,
        )
        return [(step.draft, step.ns) for step in annealing.cycle(self.even, looks)]


def chain() -> Problem:
    return chain_problem(UNEVEN, [2 * each for each in UNEVEN], cluster(4), mode="sync", mini_batch=8)


def test_what_it_hands_on_is_ever_faster_by_the_clock() -> None:
    run = Run(chain())
    found = run.cycle(600)
    times = [run.clock.time_ns(run.even), *(ns for _, ns in found)]
    assert len(found) > 0
    assert all(ns == run.clock.time_ns(draft) for draft, ns in found)
    steps = [later / earlier for earlier, later in pairwise(times) if earlier and later]
    assert max(steps) < 1.0
    assert max(steps[:-1], default=0.0) < CLEARLY


def test_what_takes_no_time_is_no_error() -> None:
    """Messages alone take some: on one device nothing does."""
    problem = chain_problem([0] * 8, [0] * 8, cluster(4), activations=[0, *[9] * 7, 0], mode="sync", mini_batch=8)
    run = Run(problem)
    assert run.cycle(400)[-1][1] == 0


def test_it_goes_nowhere_where_nothing_is_permitted() -> None:
    run = Run(chain())
    assert run.cycle(200, permitted=False) == []
    assert run.looks > 100


def test_it_ends_with_the_time() -> None:
    run = Run(chain(), late_after=50)
    run.cycle(10_000)
    assert run.looks == 50


def test_the_same_random_numbers_find_the_same() -> None:
    one, other = Run(chain()), Run(chain())
    plans = [[run.drafting.plan_of(draft) for draft, _ in run.cycle(300)] for run in (one, other)]
    assert plans[0] == plans[1]
    assert plans[0]


def test_looks_of_the_clock_count_as_plans_that_were_scored() -> None:
    """So that a search that only looks ends, too."""
    problem = chain()
    known = Incumbent(context(), Scorer(problem, context()), 1, SearchOptions(steps=1))
    for _ in range(LOOKS * len(UNEVEN)):
        assert not known.over()
        known.look()
    assert known.spent == len(UNEVEN)
    assert known.over()
