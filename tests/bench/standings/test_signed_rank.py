"""The exact signed-rank test against enumeration of all signs, and against the published table."""

import math
import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.bench.standings import statistics
from pipebench.bench.standings.statistics import holm, signed_rank_p

CRITICAL_5_PERCENT = [0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 29, 34, 40, 46, 52, 58, 65, 73, 81, 89]
"""Largest T that is significant at 5 % two-sided, n = 6 … 25: OEIS A226330, from Mitic's tables."""


def mean_ranks(sizes: list[float]) -> list[float]:
    """Ranks from 1, straight from the definition: smaller ones, and half of the equal ones."""
    return [
        sum(other < size for other in sizes) + (sum(other == size for other in sizes) + 1) / 2 for size in sizes
    ]


def enumerated_p(differences: list[float]) -> float:
    """Share of all signs whose smaller rank sum is at most the one seen."""
    ranks = mean_ranks([abs(d) for d in differences])
    used = [(rank, d) for rank, d in zip(ranks, differences, strict=True) if d != 0]
    total = sum(rank for rank, _ in used)
    seen = sum(rank for rank, d in used if d > 0)
    smaller = min(seen, total - seen)
    at_most = 0
    for signs in product((0, 1), repeat=len(used)):
        up = sum(rank for (rank, _), sign in zip(used, signs, strict=True) if sign)
        at_most += min(up, total - up) <= smaller
    return at_most / float(2 ** len(used))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 5), min_size=1, max_size=10))
def test_p_is_the_share_of_signs_at_least_as_extreme(differences: list[int]) -> None:
    assert signed_rank_p(differences) == pytest.approx(enumerated_p([float(d) for d in differences]), rel=1e-12)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30))
def test_p_does_not_depend_on_who_is_first(differences: list[int]) -> None:
    assert signed_rank_p(differences) == signed_rank_p([-d for d in differences])


@pytest.mark.parametrize(("n", "critical"), list(enumerate(CRITICAL_5_PERCENT, start=6)))
def test_the_published_critical_values(n: int, critical: int) -> None:
    def p_of(smaller_sum: int) -> float:
        """Differences 1 … n whose positive ones have that rank sum, taken greedily from the largest."""
        left, signed = smaller_sum, []
        for size in range(n, 0, -1):
            positive = size <= left
            left -= size if positive else 0
            signed.append(size if positive else -size)
        assert left == 0
        return signed_rank_p(signed)

    assert p_of(critical) <= 0.05 < p_of(critical + 1)


def test_five_differences_can_never_be_significant_and_six_can() -> None:
    assert signed_rank_p([1, 2, 3, 4, 5]) == pytest.approx(0.0625)
    assert signed_rank_p([1, 2, 3, 4, 5, 6]) == pytest.approx(0.03125)


def test_a_failure_ranks_above_every_difference() -> None:
    assert signed_rank_p([1, 2, 3, 4, 5, -math.inf]) == signed_rank_p([1, 2, 3, 4, 5, -6])
    assert signed_rank_p([0.0] * 8) == 1.0


def test_holm_on_its_own_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.5, 0.9]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), max_size=8), st.floats(0.001, 0.2))
def test_holm_rejects_what_the_step_down_procedure_rejects(chances: list[float], alpha: float) -> None:
    rejected = set()
    for step, position in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if (len(chances) - step) * chances[position] > alpha:
            break
        rejected.add(position)
    assert {i for i, p in enumerate(holm(chances)) if p <= alpha} == rejected


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.2])
def test_beyond_the_exact_ones_p_is_nearly_that(monkeypatch: pytest.MonkeyPatch, shift: float) -> None:
    draw = random.Random(1)
    differences = [round(draw.gauss(shift, 1), 1) for _ in range(statistics.MOST_EXACT)]  # with ties and zeros
    exact = signed_rank_p([*differences])
    monkeypatch.setattr(statistics, "MOST_EXACT", 0)
    assert signed_rank_p(differences) == pytest.approx(exact, rel=0.12, abs=1e-4)
    assert signed_rank_p([-each for each in differences]) == signed_rank_p(differences)
