"""Calibration files: written and read again, and refused with the place."""

from typing import Literal

import pytest
from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Spread
from pipebench.formats.calibrations import CalibrationFile, CalibrationRun, calibration_text, parse_calibration

MADE = CalibrationFile(
    device="A100-SXM4-80GB",
    framework="megatron",
    made="2026-01-01",
    suite="1",
    source='a "quoted" \\ name\x7f\U0001f600.csv',
    constants={"stream_share": 0.8, "launch_us": 21.5},
    errors={"before": 0.25},
    runs=(CalibrationRun(id="x\ny", measured_s=1.5, before_s=1.25, after_s=1.5),),
)


def test_a_file_is_read_as_it_was_written() -> None:
    read = parse_calibration(calibration_text(MADE, {"launch_us": "; a note"}).encode(), "c.toml")
    assert (read.device, read.framework, read.constants) == (MADE.device, MADE.framework, MADE.constants)
    assert read.source == MADE.source
    assert read.errors == MADE.errors
    assert read.runs[0].id == "x y"


@pytest.mark.parametrize("left_out", ["shapes", "runs"])
def test_the_interval_goes_with_the_constants(left_out: Literal["shapes", "runs"]) -> None:
    spread = Spread(low=0.9, high=1.25, count=40, left_out=left_out)
    text = calibration_text(replace(MADE, interval=spread), {})
    assert parse_calibration(text.encode(), "c.toml").tuning.spread == spread
    assert parse_calibration(calibration_text(MADE, {}).encode(), "c.toml").tuning.spread is None
    with pytest.raises(PipebenchError, match="count is 29, it must be 30 or more"):
        parse_calibration(text.replace("count = 40", "count = 29").encode(), "c.toml")
    with pytest.raises(PipebenchError, match=r"low is 0.9 and high 0.5"):
        parse_calibration(text.replace("high = 1.25", "high = 0.5").encode(), "c.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("device = 'a'\nframework = 'b'", "missing required field `constants`"),
        ("device = 'a'\nframework = 'b'\n[constants]\nlaunch = 3", "no constant 'launch' .*launch_us"),
        (
            "device = 'a'\nframework = 'b'\n[constants]\nlaunch_us = 3000",
            "launch_us is 3000.0, it must be from 5 to 80",
        ),
        ("device = 'a'\nframework = 'b'\n[constants]\nlaunch_us = nan", "launch_us is nan"),
        ("device = 'a'\nframework = 'b'\n[constants]\nlaunch_us = 'x'", "Expected `float`, got `str`"),
        ("device = 'a'\nframework = ''\n[constants]", "empty name"),
        ("device = 'a'\nframework = 'b'\nconstant = {}", "unknown key 'constant'"),
        ("device = ", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, words: str) -> None:
    with pytest.raises(PipebenchError, match=words) as error:
        parse_calibration(text.encode(), "c.toml")
    assert error.value.message.startswith("c.toml: ")
