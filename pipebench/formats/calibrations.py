"""Calibration files: constants of a device under a framework as TOML, with the runs and errors behind them."""

import json
from collections.abc import Iterator, Mapping, Sequence

from pipebench.documents.printable import one_line
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.framework import Spread
from pipebench.domain.tuning import CONSTANTS, Tuning
from pipebench.domain.value import Value
from pipebench.formats.files import read_file
from pipebench.formats.typed_text import parse_toml


class CalibrationRun(Value, frozen=True, kw_only=True):
    """A run that was fitted, and its iteration in seconds: measured, and simulated before and after."""

    id: str
    measured_s: float
    before_s: float
    after_s: float


class CalibrationFile(Value, frozen=True, kw_only=True):
    """What `calibrate` writes and `--calibration` reads.

    device: a device type's name. framework: what `--framework` calls it. constants: by name. made: the day. suite:
    the version of pipebench. source: where the runs are from. interval: of measured over predicted times, from
    runs that a fit did not see; None where they are too few. errors: mean absolute errors as shares, by what they
    are of. runs: those that were fitted. Only device, framework and constants change predictions, and interval
    what is said of them.
    """

    device: str
    framework: str
    made: str = ""
    suite: str = ""
    source: str = ""
    constants: dict[str, float]
    interval: Spread | None = None
    errors: dict[str, float] = {}
    runs: tuple[CalibrationRun, ...] = ()

    @property
    def tuning(self) -> Tuning:
        """The constants, checked. Raises InvalidValue for one that is not known or not in its range."""
        return Tuning(device=self.device, framework=self.framework, constants=self.constants, spread=self.interval)


def read_calibration(name: str) -> CalibrationFile:
    """The calibration in a file. Raises PipebenchError for a file that cannot be read, with the place in it."""
    return parse_calibration(read_file(name), name)


def parse_calibration(data: bytes, source: str) -> CalibrationFile:
    """The calibration in a TOML text. source: what errors call it. Raises PipebenchError as `read_calibration`."""
    found = parse_toml(data, CalibrationFile, source)
    try:
        _ = found.tuning
    except InvalidValue as error:
        raise PipebenchError(f"{source}: {error.message}", error.hint) from None
    return found


_UNSEEN = {
    "shapes": "each run by a fit that saw none of its shape",
    "runs": "each run by a fit that did not see it, but others of its shape",
}


def calibration_text(made: CalibrationFile, notes: Mapping[str, str]) -> str:
    """The TOML text. notes: what stands beside a constant, by its name."""
    return "\n".join(_lines(made, notes)) + "\n"


def _lines(made: CalibrationFile, notes: Mapping[str, str]) -> Iterator[str]:
    yield "# Written by `pipebench calibrate`; `--calibration FILE` takes it."
    for name in ("device", "framework", "made", "suite", "source"):
        yield f"{name} = {_quoted(getattr(made, name))}"
    yield from ("", "[constants]")
    for name, value in made.constants.items():
        yield f"# {CONSTANTS[name].meaning}{notes.get(name, '')}"
        yield f"{name} = {value!r}"
    if made.interval is not None:
        yield from ("", "[interval]")
        yield f"# 90 % of measured over predicted times, {_UNSEEN[made.interval.left_out]}"
        yield from _figures(made.interval, ("low", "high"))
        yield from (f"count = {made.interval.count}", f"left_out = {_quoted(made.interval.left_out)}")
    yield from ("", "[errors]")
    for what, share in made.errors.items():
        yield f"{what} = {share:.6f}"
    for run in made.runs:
        yield from ("", "[[runs]]", f"id = {_quoted(run.id)}")
        yield from _figures(run, ("measured_s", "before_s", "after_s"))


def _figures(run: CalibrationRun | Spread, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        yield f"{name} = {float(getattr(run, name)):.6g}"


def _quoted(text: str) -> str:
    """A basic string: what JSON escapes, TOML reads."""
    return json.dumps(one_line(text), ensure_ascii=False).replace("\x7f", "\\u007f")
