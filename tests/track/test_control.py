"""The A/A pair: its alarms are counted, and how little is known after few nights is said."""

import random

import pytest

from pipebench.track.measurement.ratios import control
from pipebench.track.nights.night import PairedRatios, SubjectNight
from tests.track.made_nights import measured, night


def pair(draw: random.Random, apart: float = 1.0, rounds: int = 10) -> SubjectNight:
    own = [5.0 * draw.uniform(0.99, 1.01) for _ in range(rounds + 1)]
    twin = [5.0 * apart * draw.uniform(0.99, 1.01) for _ in range(rounds)]
    made = [PairedRatios(rounds={"interpreter": tuple(each)}, calibration="c") for each in (own, twin)]
    return measured(paired=made[0], twin=made[1])


def test_pairs_of_the_same_give_no_alarm() -> None:
    draw = random.Random(1)
    found = control([night(i, pair(draw)) for i in range(30)])
    assert (found.nights, found.alarms, found.rate) == (30, 0, 0.0)
    assert found.most == pytest.approx(1 - 0.05 ** (1 / 30), rel=1e-6)
    assert found.tonight is not None
    assert found.tonight.answer == "same"


def test_a_pair_that_differs_is_an_alarm() -> None:
    draw = random.Random(2)
    found = control([*[night(i, pair(draw)) for i in range(9)], night(9, pair(draw, apart=1.2))])
    assert (found.nights, found.alarms, found.rate) == (10, 1, 0.1)
    assert found.most == pytest.approx(0.394, abs=0.001)  # Clopper and Pearson, 1 of 10, one-sided 95 %


def test_too_few_rounds_are_no_night() -> None:
    found = control([night(0, pair(random.Random(3), rounds=5))])
    assert (found.nights, found.rate, found.most) == (0, None, None)
    assert found.tonight is not None
    assert found.tonight.answer == "too few pairs"


def test_the_round_before_there_was_a_twin_is_left_out() -> None:
    rounds = tuple(float(number) for number in range(1, 10))
    own = PairedRatios(rounds={"interpreter": (99.0, *rounds)}, calibration="c")
    twin = PairedRatios(rounds={"interpreter": rounds}, calibration="c")
    found = control([night(0, measured(paired=own, twin=twin))]).tonight
    assert found is not None
    assert (found.change, found.low, found.high, found.count) == (0.0, 0.0, 0.0, 9)


def test_nights_without_a_pair() -> None:
    assert control([night(0)]).rate is None
