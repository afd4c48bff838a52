"""What the search keeps and leaves early changes none of the plans that it scores, nor their order."""

from collections.abc import Callable, Sequence

import pytest

from pipebench.algorithms.orders.greedy import GreedyOrder
from pipebench.algorithms.orders.tables import Tables
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.value import digest
from pipebench_schedules import greedy
from pipebench_search import score
from pipebench_search.estimates import clock
from pipebench_search.planner import plan
from pipebench_search.score import Scored, Scorer
from tests import language_models
from tests.plugins.search.test_search import context
from tests.plugins.search.tight import tight

Found = list[tuple[str, tuple[bool, int] | None]]
"""Of each plan that was scored its id, and what came of it."""


def every_order(
    tables: Tables, tried: Sequence[tuple[list[int], bool]], below: tuple[int, int] | None = None
) -> GreedyOrder:
    """As `best_order`, each order to its end."""
    best = min((GreedyOrder(tables, *each) for each in tried), key=lambda order: order.rank)
    best.complete = below is None or best.rank < below
    return best


def scored(problem: Problem, steps: int, patch: pytest.MonkeyPatch) -> Found:
    """What a search of so many plans for each operator scores."""
    found: Found = []
    with patch.context() as within:
        for name in ("score", "as_annealed"):
            within.setattr(Scorer, name, noted(getattr(Scorer, name), found))
        plan(problem, context(steps=steps))
    return found


def noted(score: Callable[..., Scored | None], found: Found) -> Callable[..., Scored | None]:
    def noting(self: Scorer, made: Plan, *arguments: object) -> Scored | None:
        scored = score(self, made, *arguments)
        found.append((digest(made), None if scored is None else scored.rank))
        return scored

    return noting


@pytest.mark.parametrize(
    ("problem", "steps"),
    [
        (tight(1, "sync", operators=7), 2),
        pytest.param(tight(2, "async", operators=7), 2, marks=pytest.mark.nightly),
        (language_models.problem(devices=16, mini_batch=16, **language_models.TINY), 1),
    ],
    ids=["sync", "async", "language model"],
)
def test_it_scores_the_same_plans(problem: Problem, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = scored(problem, steps, monkeypatch)
    monkeypatch.setattr(score, "CachedCosts", CostModel)
    for module in (clock, greedy):
        monkeypatch.setattr(module, "best_order", every_order)
    assert scored(problem, steps, monkeypatch) == found
    assert len({each for each, _ in found}) > 10
