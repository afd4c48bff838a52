"""The one error class that a user may see, its exit codes, and the nearest-name hint."""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    OK = 0
    CONDITION_FAILED = 1
    USAGE = 2
    PLUGIN_NOT_LOADED = 3
    NOTHING_RAN = 4
    SOME_FAILED = 5
    INCONCLUSIVE = 6
    INTERNAL = 70
    INTERRUPTED = 130
    READER_GONE = 141


class PipebenchError(Exception):
    """A mistake or a limit that the user can act on; shown as one line, without a traceback.

    message: what was wrong and where. hint: what to do next, or None.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, hint: str | None = None, exit_code: ExitCode | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidValue(PipebenchError, ValueError):
    """A value breaks its own rules; while a document is decoded the path inside it is added.

    field: what breaks them, where it is one field or an element of it, such as forward_s[0].
    """

    def __init__(self, message: str, hint: str | None = None, field: str = "") -> None:
        super().__init__(message, hint)
        self.field = field


class UnsupportedProblem(PipebenchError):
    """The component cannot express what the problem asks (a pin, a regime, a graph shape)."""


class InfeasibleProblem(PipebenchError):
    """The planner proved, or gave up after searching its whole class, that no plan of its class fits.

    claimed_s: seconds of a mini-batch that the planner expected of a partition which then could not be scheduled.
    """

    def __init__(self, message: str, hint: str | None = None, claimed_s: float | None = None) -> None:
        super().__init__(message, hint)
        self.claimed_s = claimed_s


class PluginNotLoaded(PipebenchError):
    """A requested plugin exists but could not be loaded."""

    exit_code = ExitCode.PLUGIN_NOT_LOADED


class PluginFailed(PipebenchError):
    """The code of a plugin failed, ended its process, took too long, or returned what is no result of its slot."""

    exit_code = ExitCode.SOME_FAILED


MOST_LISTED, MOST_COMPARED = 200, 2000
"""Names that a hint lists, and among how many it looks for the closest: more would take seconds."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint that offers the closest valid name, or lists them all when none is close."""
    names = sorted(valid)
    close = get_close_matches(name[:MOST_LISTED], names, n=1, cutoff=0.5) if len(names) <= MOST_COMPARED else []
    listed = ", ".join(names if len(names) <= MOST_LISTED else [*names[:MOST_LISTED], f"… ({len(names)} in all)"])
    if close:
        return f"did you mean {close[0]!r}? Valid: {listed}"
    return f"valid: {listed}" if names else "there are none"


def nearest_numbers(wanted: int, valid: Iterable[int], most: int = 3) -> str:
    """The numbers that come nearest, ascending, in a hint."""
    near = sorted(sorted(valid, key=lambda number: abs(number - wanted))[:most])
    return ", ".join(map(str, near))


def unknown(what: str, name: str, valid: Iterable[str]) -> PipebenchError:
    """The error for a name that does not exist: what it was meant to be and the nearest valid one."""
    return PipebenchError(f"unknown {what} {name!r}", nearest(name, valid))
