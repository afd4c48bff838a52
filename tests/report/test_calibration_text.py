"""What is said below the tables of a calibration."""

from typing import Literal

import pytest
from msgspec.structs import replace

from pipebench.bench.accuracy.metrics import Errors
from pipebench.bench.calibration.outcome import FittedRun, Outcome
from pipebench.domain.framework import Spread
from pipebench.report.text.measurements.calibration import interval_line, remark_lines

ERRORS = Errors(count=2, mean_absolute=0.1, mean_signed=0.1, median_absolute=0.1, largest_absolute=0.1)


def outcome(shapes: int, unseen: Errors | None) -> Outcome:
    """Two runs, none of whose shapes was left out."""
    return Outcome(
        device="A100",
        framework="megatron",
        constants=(),
        runs=tuple(FittedRun(id=name, measured_s=1.0, before_s=1.1, after_s=1.0) for name in "ab"),
        before=ERRORS,
        after=ERRORS,
        unseen=unseen,
        unseen_shapes=None,
        groups=2 if unseen else 0,
        shapes=shapes,
        left={},
    )


@pytest.mark.parametrize(
    ("shapes", "unseen", "words", "wrong"),
    [
        (1, None, "the runs have 1 of the 3 shapes that --leave-out shapes takes", "did not see"),
        (2, ERRORS, "the runs have 2 of the 3 shapes", "no shape was left out"),
        (5, ERRORS, "no shape was left out of a fit", "5 of the 3 shapes"),
    ],
)
def test_what_nothing_says(shapes: int, unseen: Errors | None, words: str, wrong: str) -> None:
    said = " ".join(remark_lines(outcome(shapes, unseen)))
    assert words in said
    assert wrong not in said


@pytest.mark.parametrize(
    ("left_out", "unseen"), [("shapes", "did not see their shapes"), ("runs", "did not see them, but others of")]
)
def test_the_interval_of_predictions_is_said(left_out: Literal["shapes", "runs"], unseen: str) -> None:
    assert "carry no interval: that takes 30 runs" in interval_line(outcome(1, ERRORS))
    spread = Spread(low=0.9, high=1.125, count=44, left_out=left_out)
    said = interval_line(replace(outcome(3, ERRORS), spread=spread))
    assert "the interval -10.0 % to +12.5 %: 90 % of 44 runs" in said
    assert unseen in said


@pytest.mark.parametrize(("measured_s", "warns"), [(50.0, False), (1100.0, True), (0.0011, True)])
def test_a_time_of_another_unit_is_warned_of(measured_s: float, warns: bool) -> None:
    """A run that is simulated to take 1.1 s: milliseconds are 1000 times as many."""
    made = outcome(2, None)
    other = replace(made.runs[1], measured_s=measured_s)
    lines = list(remark_lines(replace(made, runs=(made.runs[0], other))))
    assert any("the measured time of 1 run is 100 times off" in line for line in lines) == warns
