"""The clock of the search: what it keeps is what the cost model says."""

import random

import pytest

from pipebench.algorithms.orders.tables import Tables
from pipebench.check import check_plan
from pipebench.domain.problem import Problem
from pipebench_search.drafts.draft import Drafting
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.estimates.clock import Clock
from pipebench_search.estimates.guess import Guesses
from pipebench_search.score import CachedCosts
from tests.plugins.search.tight import tight


def clock_of(problem: Problem) -> tuple[Clock, Drafting, Neighbourhood, CachedCosts]:
    model, drafting = CachedCosts(problem), Drafting(problem)
    return Clock(model, drafting, Guesses(model)), drafting, Neighbourhood(model, drafting), model


@pytest.mark.parametrize("number", range(12))
def test_its_tables_are_those_of_the_plan(number: int) -> None:
    """Along random moves, with stages on shared devices, replicas, copies, recomputation and order edges."""
    problem = tight(number, "sync", operators=8, devices=2 + number % 3)
    clock, drafting, near, model = clock_of(problem)
    draw = random.Random(number)
    seeds = [seed for seed in near.seeds() if drafting.possible(seed)]
    compared = chained = 0
    for _ in range(10):
        here = draw.choice(seeds)
        for _ in range(25):
            moves = [made for _, made in near.moves(here) if drafting.possible(made)]
            here = draw.choice(moves)
            plan = drafting.plan_of(here)
            if plan is None or not clock.shows(here) or check_plan(problem, plan).status == "invalid":
                continue
            count = problem.mini_batch // here.copies // here.parts[0].micro_batch
            assert clock.tables(here) == Tables.of(model, plan, count, links=True)
            compared += 1
            chained += here.chained
    assert compared >= 20
    assert chained >= 1
