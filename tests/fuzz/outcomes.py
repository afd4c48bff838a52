"""What became of an input: accepted, refused in one line, or a failure that the gate counts."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import msgspec

from pipebench.domain.errors import PipebenchError

LONGEST_S = 10.0
MOST_BYTES = 2**30
REFUSALS = (PipebenchError, click.ClickException)


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One input. failure: its kind, empty where there is none. told: the traceback, or how it ended.

    seconds: CPU time; peak_bytes: the most that the worker held.
    """

    number: int
    refused: bool = False
    failure: str = ""
    told: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0


def refused(work: Callable[..., Any], *arguments: Any) -> bool:
    """Whether the work refused its input as a user's mistake. Raises whatever else it raises."""
    try:
        work(*arguments)
    except REFUSALS:
        return True
    return False


@dataclass(frozen=True, slots=True)
class Verdict:
    """refused: whether the input was. failure, told: as of Outcome."""

    refused: bool = False
    failure: str = ""
    told: str = ""


def judged(error: BaseException | None) -> Verdict:
    """What an error means; None: the input was accepted."""
    if error is None:
        return Verdict()
    if isinstance(error, REFUSALS):
        text = str(error) if isinstance(error, PipebenchError) else error.format_message()  # type: ignore[attr-defined]
        if not text.strip():
            return Verdict(True, "a refusal without a word", repr(error))
        return Verdict(True)
    told = "".join(traceback.format_exception(error))
    place = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in place if "pipebench" in frame.filename] or list(place)
    where = f"{ours[-1].filename.rpartition('/')[2]}:{ours[-1].name}" if ours else "?"
    return Verdict(failure=f"{type(error).__name__} in {where}", told=told)
