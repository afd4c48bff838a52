"""Plans made to fit: what stages hold against schedules, and the search with less and less memory."""

import random
from itertools import pairwise

import pytest

from pipebench.algorithms.fitting import MOST_TRIES, excess_bytes, live_micro_batches, search_within
from pipebench.check import check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from tests.builders import chain_problem, cluster, stages_plan
from tests.plugins.running import scheduled


def instance(seed: int, memory: int = 10**9) -> tuple[Problem, Plan]:
    """Cuts of a chain; some plans say what is in flight, some leave it to the rule."""
    chance = random.Random(seed)
    count = chance.randint(1, 5)
    drawn = [[chance.randint(1, 50) for _ in range(count + 1)] for _ in range(4)]
    problem = chain_problem(
        drawn[0][:count], drawn[1][:count], cluster(5, memory=memory), activations=drawn[2],
        weights=drawn[3][:count], mode="sync", mini_batch=12,
    )  # fmt: skip
    places = sorted(chance.sample(range(1, count), chance.randint(0, count - 1)))
    groups = [list(range(a, b)) for a, b in pairwise((0, *places, count))]
    size = chance.choice([1, 2, 3])
    kept = [(len(groups) - at + 1) * size for at in range(len(groups))] if chance.random() < 0.5 else None
    edges = [(at, at + 1) for at in range(len(groups) - 1)]
    return problem, stages_plan(groups, micro_batch=size, in_flight=kept, order_edges=edges)


@pytest.mark.parametrize("seed", range(30))
def test_the_excess_is_what_the_check_finds(seed: int) -> None:
    problem, plan = instance(seed)
    verdict = check_schedule(problem, plan, scheduled(problem, plan))
    assert verdict.peak_bytes is not None
    fullest = max(verdict.peak_bytes.values())
    assert excess_bytes(problem, plan, [fullest] * len(plan.stages)) == 0
    problem, plan = instance(seed, fullest - 1)
    verdict = check_schedule(problem, plan, scheduled(problem, plan))
    assert verdict.witness is not None
    assert verdict.witness.bytes_over == excess_bytes(problem, plan, [fullest - 1] * len(plan.stages)) == 1


def test_no_stage_holds_more_micro_batches_than_there_are() -> None:
    _, plan = instance(0)
    for seed in range(30):
        problem, plan = instance(seed)
        size = plan.stages[0].micro_batch
        assert max(live_micro_batches(problem, plan)) <= problem.mini_batch // size
        limits = [10**6] * len(plan.stages)
        model = CostModel(problem)
        once = max(model.stage_memory(plan, at, model.messages(plan)).peak(1) for at in range(len(plan.stages)))
        assert excess_bytes(problem, plan, limits, [1] * len(plan.stages)) == once - 10**6


Answer = tuple[int, int]
"""Bytes that a search counts, and bytes that there are in fact."""


def searched(answers: list[Answer], limit: int) -> tuple[Answer | None, int]:
    """A search that likes earlier answers better."""
    tries = 0

    def best(planned: float) -> Answer | None:
        nonlocal tries
        tries += 1
        return next((each for each in answers if each[0] <= planned), None)

    return search_within(limit, best, lambda each: each[1] - limit), tries


def test_the_first_answer_that_fits_ends_it() -> None:
    assert searched([(90, 100), (50, 60)], 100) == ((90, 100), 1)
    assert searched([(90, 120), (50, 60)], 100) == ((50, 60), 2)
    assert searched([(90, 101), (89, 101), (50, 60)], 100)[0] == (50, 60)
    assert searched([(101, 101)], 100) == (None, 1)
    assert searched([(90, 101)], 100)[0] is None


def test_what_is_too_much_less_is_given_back() -> None:
    """The excess of the first answer is more than the search has to plan without: 100 - 60 leaves nothing."""
    assert searched([(95, 160), (70, 80)], 100)[0] == (70, 80)


@pytest.mark.parametrize("seed", range(200))
def test_it_ends_and_returns_what_fits(seed: int) -> None:
    chance = random.Random(seed)
    counted = sorted((chance.randint(0, 120) for _ in range(chance.randint(0, 6))), reverse=True)
    answers = [(each, each + chance.randint(0, 40)) for each in counted]
    found, tries = searched(answers, 100)
    assert tries <= MOST_TRIES
    if found is not None:
        assert found[1] <= 100
    elif answers:
        # Less memory is counted by answers liked less: the last one is met unless it does not fit either.
        assert answers[-1][1] > 100 or answers[-1][0] == answers[-2][0]
