"""The trade-off of finding and false alarms: histories as planted, counts by hand, other tools by a stand-in."""

import json
import math
import stat
import statistics
import sys
from pathlib import Path

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.track.roc.histories import BEFORE, CHANGES, STEADY, Planted, made_history
from pipebench.track.roc.judges import THRESHOLDS, Judge, first_told
from pipebench.track.roc.trade_off import measure_trade_off, wilson

STAND_IN = """#!{python}
import json, sys
asked = json.load(sys.stdin)
first = asked["first"]
# says in each night from the fourth after the change on that something began there
answers = [
    [[[60] if night >= 63 else [] for night in range(first, len(series))] for series in asked["histories"]]
    for _ in asked["thresholds"]
]
json.dump({{"version": "9.9", "positions": answers}}, sys.stdout)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Judge:
    script = tmp_path / "python"
    script.write_text(STAND_IN.format(python=sys.executable))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return Judge("asv", str(script))


def test_a_history_is_the_same_again_and_has_the_noise_and_the_change_that_were_asked_for() -> None:
    planted = Planted("step", 0.2)
    assert made_history(planted, 0.06, 3, 1) == made_history(planted, 0.06, 3, 1)
    many = [made_history(planted, 0.06, 3, number) for number in range(200)]
    before = [point.ratio for history in many for point in history[:BEFORE]]
    after = [point.ratio for history in many for point in history[BEFORE:]]
    assert statistics.stdev(before) / statistics.fmean(before) == pytest.approx(0.06, rel=0.03)
    assert statistics.median(after) / statistics.median(before) == pytest.approx(1.2, rel=0.01)


@pytest.mark.parametrize("slope", [0.002, 0.003, 0.005])
def test_a_drift_sums_up_to_six_percent_in_the_night_by_which_it_is_to_be_told(slope: float) -> None:
    planted = Planted("drift", slope)
    assert planted.summed(planted.nights_to_tell) == pytest.approx(0.06)
    assert planted.summed(0) == 0.0
    assert planted.summed(planted.nights - BEFORE) == pytest.approx(0.12)
    history = made_history(planted, 1e-9, 0, 0)
    assert history[BEFORE + planted.nights_to_tell - 1].ratio == pytest.approx(1.06)


def test_a_position_is_told_once_until_another_one_is_far_from_it() -> None:
    nights = [[], [40], [41], [40, 52], [52], [], [30]]
    assert first_told(nights, 59) == [60, 62]


@pytest.mark.parametrize(
    ("count", "of", "low", "high"), [(0, 100, 0.0, 0.0370), (10, 100, 0.0552, 0.1744), (100, 100, 0.9630, 1.0)]
)
def test_the_interval_of_a_rate_is_that_of_published_tables(count: int, of: int, low: float, high: float) -> None:
    assert wilson(count, of) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_counts_and_delays_are_those_of_a_tool_whose_answers_are_known(stand_in: Judge) -> None:
    found = measure_trade_off([(stand_in, 2)])
    assert found.versions == {"asv": "9.9"}
    assert len(found.found) == 3 * len(CHANGES) * len(THRESHOLDS["asv"])
    for each in found.found:
        assert (each.histories, each.told, each.delay, each.late) == (2, 2, 4, 4)
        assert each.summed == pytest.approx(4 * each.size if each.shape == "drift" else each.size)
    for rate in found.false_alarms:
        assert (rate.nights, rate.alarms) == (2 * 60, 2)
        assert (rate.low, rate.high) == wilson(2, 120)


def test_the_rule_of_this_suite_is_judged_from_the_first_night_that_has_a_history() -> None:
    found = measure_trade_off([(Judge("pipebench"), 2)], seed=1)
    assert {each.nights for each in found.false_alarms} == {2 * (STEADY.nights - 30)}
    sure = [
        each
        for each in found.found
        if (each.cv, each.shape, each.size, each.threshold) == (0.025, "step", 0.2, 1.0)
    ]
    assert (sure[0].told, sure[0].delay) == (2, 1)
    assert math.isclose(sure[0].summed or 0.0, 0.2)
    assert found == measure_trade_off([(Judge("pipebench"), 2)], seed=1)
    assert json.dumps([each.told for each in found.found]) != json.dumps(
        [each.told for each in measure_trade_off([(Judge("pipebench"), 2)], seed=2).found]
    )


def test_a_tool_that_is_not_there_is_said_in_one_line() -> None:
    with pytest.raises(PipebenchError, match=r"--asv: .* does not run asv: ModuleNotFoundError"):
        Judge("asv", sys.executable).version()
    with pytest.raises(PipebenchError, match=r"--otava: '/nowhere/python' cannot be run: No such file") as caught:
        Judge("otava", "/nowhere/python").version()
    assert "an environment" in str(caught.value.hint)
