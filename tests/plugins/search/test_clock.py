"""The clock of the search: what it keeps is what the cost model says."""

import random

import pytest

from pipebench.algorithms.orders.tables import Tables
from pipebench.check import check_plan
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from pipebench_search.drafts.draft import Draft, Drafting, Part
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.estimates.clock import Clock
from pipebench_search.estimates.guess import Guesses
from pipebench_search.score import CachedCosts
from tests import language_models
from tests.plugins.search.tight import tight


def clock_of(problem: Problem) -> tuple[Clock, Drafting, Neighbourhood]:
    model, drafting = CachedCosts(problem), Drafting(problem)
    return Clock(model, drafting, Guesses(model)), drafting, Neighbourhood(model, drafting)


@pytest.mark.parametrize("number", range(12))
def test_its_tables_are_those_of_the_plan(number: int) -> None:
    """Along random moves, with stages on shared devices, replicas, copies, recomputation and order edges."""
    problem = tight(number, "sync", operators=8, devices=2 + number % 3)
    compared = compare(problem, number)
    assert len(compared) >= 20
    assert any(draft.chained for draft in compared)


@pytest.mark.parametrize("number", range(2))
def test_they_are_on_nodes_whose_links_differ(number: int) -> None:
    """What is kept of a stage or a message holds where it crosses the same level; copies reduce across nodes."""
    compared = compare(language_models.problem(devices=16, mini_batch=16, **language_models.TINY), number)
    assert len(compared) >= 20
    assert {draft.copies > 1 for draft in compared} == {False, True}


def test_copies_reduce_over_all_devices_between() -> None:
    """The same stage on the same devices: its copy is in the same node, or in the next one."""
    problem = language_models.problem(devices=16, mini_batch=16, **language_models.TINY)
    model, drafting = CachedCosts(problem), Drafting(problem)
    guesses, cuts = Guesses(model), Neighbourhood(model, drafting).even_cuts(2)
    assert cuts is not None
    parts = tuple(Part(operators, group, drafting.ways[0], 8) for group, operators in enumerate(cuts))
    times = []
    for sizes in ((1, 1), (1, 7)):
        draft = Draft(parts, sizes, copies=2)
        plan = drafting.plan_of(draft)
        assert plan is not None
        times.append(guesses.stage_times(draft, parts[0]))
        assert times[-1] == CostModel(problem).stage_times(plan.stages[0], plan)
    assert times[0].all_reduce < times[1].all_reduce


def compare(problem: Problem, number: int) -> list[Draft]:
    """Drafts along random moves, whose tables by the clock are those of their plans by the cost model."""
    clock, drafting, near = clock_of(problem)
    model, compared = CostModel(problem), []
    draw = random.Random(number)
    seeds = [seed for seed in near.seeds() if drafting.possible(seed)]
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
            compared.append(here)
    return compared
