"""From samples to the ratio of a night."""

import pytest

from pipebench.bench.searches.request import Sample
from pipebench.track.measurement.ratios import FEWEST_ROUNDS, MOST_ROUNDS, SubjectRounds, point_of, ratio_of
from tests.track.made_nights import measured, paired


def sample(cpu_s: float, wall_s: float | None = None, beside: float = 1.0) -> Sample:
    calibration = {"interpreter": beside, "numpy": 2.0 * beside}
    return Sample(cpu_s=cpu_s, wall_s=cpu_s if wall_s is None else wall_s, calibration_cpu_s=calibration)


def test_a_process_is_the_median_of_its_pairs() -> None:
    gathered = SubjectRounds()
    gathered.add([sample(4.0), sample(6.0, beside=2.0), sample(9.0)])
    made = gathered.paired_ratios()
    assert made is not None
    assert made.rounds == {"interpreter": (4.0,), "numpy": (2.0,)}


def test_a_pair_that_waited_is_discarded_and_counted() -> None:
    gathered = SubjectRounds()
    gathered.add([sample(4.0, wall_s=12.1), sample(5.0, wall_s=14.9)])
    made = gathered.paired_ratios()
    assert made is not None
    assert (made.rounds["interpreter"], made.discarded) == ((5.0,), 1)


def test_nothing_timed_is_nothing() -> None:
    gathered = SubjectRounds()
    gathered.add([])
    assert gathered.paired_ratios() is None
    assert ratio_of(None) is None


def test_a_search_without_cpu_time_has_no_ratio() -> None:
    gathered = SubjectRounds()
    gathered.add([sample(0.0, wall_s=0.0)])
    assert gathered.count == 0


def test_steady_processes_are_enough_early_and_scattered_ones_at_the_end() -> None:
    steady, scattered = SubjectRounds(), SubjectRounds()
    for number in range(MOST_ROUNDS):
        assert steady.is_complete is (number >= FEWEST_ROUNDS)
        assert scattered.is_complete is False
        steady.add([sample(5.0)])
        scattered.add([sample(5.0 + number % 3)])
    assert scattered.is_complete
    made = scattered.paired_ratios()
    assert made is not None
    assert not made.imprecise


def test_a_budget_that_ended_early_leaves_it_imprecise() -> None:
    gathered = SubjectRounds()
    for number in range(6):
        gathered.add([sample(5.0 + number % 3)])
    made = gathered.paired_ratios()
    assert made is not None
    assert made.imprecise


def test_processes_beside_others_end_the_waiting() -> None:
    gathered = SubjectRounds()
    for _ in range(MOST_ROUNDS):
        assert not gathered.is_complete
        gathered.add([sample(5.0)], alone=False)
    assert gathered.is_complete
    assert (gathered.count, gathered.refused) == (0, MOST_ROUNDS)


def test_a_process_whose_pairs_all_waited_still_counts_as_timed() -> None:
    gathered = SubjectRounds()
    gathered.add([sample(1.0, wall_s=9.0)])
    assert (gathered.processes, gathered.count) == (1, 0)
    made = gathered.paired_ratios()
    assert made is not None
    assert (made.rounds, made.discarded, made.imprecise, ratio_of(made)) == ({}, 1, True, None)


def test_the_point_of_a_night_has_its_rerun() -> None:
    assert point_of(measured()) is None
    point = point_of(measured(5.0, 6.0))
    assert point is not None
    assert (point.ratio, point.again) == pytest.approx((5.0, 6.0))
    assert ratio_of(paired(5.0)) == 5.0
