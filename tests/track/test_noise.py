"""Spread and resemblance: against their definitions, and on noise whose figures are known."""

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.track.rule.noise import BLOCK, SPREAD_ERROR, Noise, level, pair_spread


def white(draw: random.Random, count: int = BLOCK) -> list[float]:
    return [draw.gauss(0.0, 1.0) for _ in range(count)]


def autoregression(draw: random.Random, resemblance: float, count: int) -> list[float]:
    found = [draw.gauss(0.0, 1.0)]
    while len(found) < count:
        found.append(resemblance * found[-1] + math.sqrt(1 - resemblance**2) * draw.gauss(0.0, 1.0))
    return found


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=12))
def test_the_spread_is_an_order_statistic_of_the_distances_of_pairs(values: list[int]) -> None:
    """Choose(h, 2) of them are not larger, h being half of the values and one."""
    half = len(values) // 2 + 1
    wanted = sorted(abs(a - b) for a, b in itertools.combinations(values, 2))[math.comb(half, 2) - 1]
    factor = len(values) / (len(values) + (1.4 if len(values) % 2 else 3.8))
    assert pair_spread(values) == pytest.approx(2.21914 * factor * wanted, rel=1e-5)


def test_it_is_the_standard_deviation_of_normal_values_with_the_error_that_is_stated() -> None:
    draw = random.Random(1)
    found = [pair_spread(white(draw)) for _ in range(1500)]
    assert statistics.fmean(found) == pytest.approx(1.0, abs=0.02)
    assert statistics.stdev(found) == pytest.approx(SPREAD_ERROR, abs=0.01)


def test_wild_nights_hardly_move_it() -> None:
    draw = random.Random(2)
    found = [pair_spread([*white(draw, BLOCK - 3), 50.0, 80.0, -90.0]) for _ in range(200)]
    assert statistics.fmean(found) < 1.25


def test_a_level_is_the_mean_without_a_sixth_at_each_end() -> None:
    assert level([0.0, 1.0, 2.0, 3.0, 4.0, 500.0]) == 2.5
    assert level([1.0, 4.0]) == 2.5


def test_there_is_no_spread_before_a_block_is_whole_and_a_change_of_level_hardly_counts() -> None:
    draw, noise = random.Random(3), Noise()
    for value in white(draw, BLOCK - 1):
        noise.add(value)
    assert noise.spread == 0.0
    for value in [0.0, *white(draw, BLOCK), *(9.0 + each for each in white(draw, 2 * BLOCK))]:
        noise.add(value)
    assert 0.7 < noise.spread < 1.3
    assert noise.spread_at_most == pytest.approx(noise.spread * (1 + SPREAD_ERROR / 2))


@pytest.mark.parametrize(("resemblance", "least", "most"), [(0.0, 1.0, 1.06), (0.3, 1.15, 1.37), (0.5, 1.4, 1.74)])
def test_wander_is_found_where_it_is_and_not_overrated(resemblance: float, least: float, most: float) -> None:
    draw = random.Random(4)
    found = []
    for _ in range(200):
        noise = Noise()
        for value in autoregression(draw, resemblance, 4 * BLOCK):
            noise.add(value)
        found.append(noise.wander)
    assert least <= statistics.fmean(found) <= most
