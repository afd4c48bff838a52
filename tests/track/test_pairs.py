"""Interleaved pairs: the same is the same, a fifth is seen, and too few pairs say so."""

import math
import random

import pytest

from pipebench.track.rule.statistics import compare_pairs, half_width, median_interval, spread


def pairs(draw: random.Random, change: float, noise: float, count: int = 15) -> list[float]:
    return [math.log(change) + draw.gauss(0.0, noise) for _ in range(count)]


@pytest.mark.parametrize("noise", [0.01, 0.026, 0.06])
def test_the_same_is_never_told_to_differ(noise: float) -> None:
    draw = random.Random(1)
    answers = [compare_pairs([pairs(draw, 1.0, noise)])[0].answer for _ in range(1000)]
    assert answers.count("same") >= 999


@pytest.mark.parametrize(("change", "answer"), [(1.2, "slower"), (1 / 1.2, "faster")])
def test_a_fifth_is_seen(change: float, answer: str) -> None:
    draw = random.Random(2)
    assert sum(compare_pairs([pairs(draw, change, 0.05)])[0].answer == answer for _ in range(300)) >= 0.95 * 300


def test_a_change_within_the_tolerance_is_the_same_however_sure_it_is() -> None:
    found = compare_pairs([[math.log(1.04)] * 15])[0]
    assert (found.answer, found.count) == ("same", 15)
    assert found.low == pytest.approx(0.04)


@pytest.mark.parametrize(("count", "answer"), [(0, "too few pairs"), (7, "too few pairs"), (8, "slower")])
def test_eight_pairs_are_the_fewest(count: int, answer: str) -> None:
    assert compare_pairs([[math.log(2.0)] * count])[0].answer == answer


def test_many_comparisons_are_corrected() -> None:
    quiet = [0.01 * (-1) ** i for i in range(15)]
    alone, among = compare_pairs([[math.log(2.0)] * 8])[0], compare_pairs([[math.log(2.0)] * 8, *[quiet] * 30])[0]
    assert alone.answer == "slower"
    assert among.answer == "same"
    assert among.p > alone.p


@pytest.mark.parametrize(("count", "left_out"), [(8, 0), (12, 1), (15, 2)])
def test_the_interval_of_order_statistics(count: int, left_out: int) -> None:
    values = [float(value) for value in range(count)]
    assert median_interval(values, 0.01) == (left_out, count - 1 - left_out)
    missed = 2 * sum(math.comb(count, k) for k in range(left_out + 1)) / 2**count
    assert missed <= 0.01 < missed + 2 * math.comb(count, left_out + 1) / 2**count


def test_no_interval_for_few_values() -> None:
    assert median_interval([1.0] * 7, 0.01) == (-math.inf, math.inf)


def test_spread_estimates_a_standard_deviation_and_forgets_a_wild_value() -> None:
    draw = random.Random(3)
    values = [draw.gauss(0.0, 2.0) for _ in range(5000)]
    assert spread(values) == pytest.approx(2.0, rel=0.05)
    assert spread([*values, 1e9]) == pytest.approx(spread(values), rel=0.01)


def test_half_width_shrinks_with_more_values() -> None:
    draw = random.Random(4)
    few, many = ([draw.gauss(0.0, 1.0) for _ in range(count)] for count in (10, 1000))
    assert half_width(many) < half_width(few) / 3
    assert half_width([1.0, 2.0]) == math.inf
