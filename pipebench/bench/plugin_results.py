"""What plugins return, brought to the exact types of the domain once, at the edge of the host."""

import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from typing import Any, TypeVar, cast

import msgspec

from pipebench.documents.printable import one_line
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import PipebenchError, PluginFailed
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan
from pipebench.domain.profile import Profile
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.hooks.discovery import cause, first_line

T = TypeVar("T")
MOST_COUNTED = 2**63
MOST_NOTICES, MOST_LETTERS = 100, 2000
"""Of a row, and of each notice: more would drown what other rows say."""


def call_plugin(who: str, work: Callable[[], T]) -> T:
    """Run a plugin's work; what it prints goes to stderr. Raises PluginFailed for whatever else it raises."""
    try:
        with redirect_stdout(sys.stderr):
            return work()
    except (PipebenchError, MemoryError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit included
        raise PluginFailed(f"{who} failed: {cause(error)}") from error


def as_result(label: str, returned: object) -> PlanResult:
    """What a planner returned, as a PlanResult; a bare Plan is accepted. Raises PipebenchError for others."""
    if isinstance(returned, Plan):
        return PlanResult(plan=returned)
    if not isinstance(returned, PlanResult):
        raise PluginFailed(
            f"planner {label!r} returned {type(returned).__name__}, not a PlanResult",
            "return pipebench.domain.result.PlanResult(plan=…)",
        )
    return returned


def exact_result(label: str, returned: object) -> PlanResult:
    """As `as_result`, every part of exactly its type."""
    return cast(PlanResult, _exact(f"planner {label!r}", as_result(label, returned), PlanResult))


def exact_counters(label: str, counters: object) -> dict[str, int]:
    """The work counters of a planner, names to ints. Raises PipebenchError for others."""
    exact = cast(dict[str, int], _exact(f"planner {label!r}", counters, dict[str, int], "counters"))
    for name, amount in exact.items():
        if amount < 0:
            raise PipebenchError(f"planner {label!r} returned a counter below zero: {name} is {amount}")
        if amount >= MOST_COUNTED:
            raise PipebenchError(f"planner {label!r} returned a counter that is too large: {name} is {amount}")
    return exact


def few_notices(lines: Iterable[object]) -> tuple[str, ...]:
    """The first lines that a component notes, each on one line, not too long; the last one tells of the rest."""
    texts = [one_line(str(line)) for line in lines]
    kept = [text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…" for text in texts[:MOST_NOTICES]]
    left = len(texts) - len(kept)
    return (*kept, f"and {left:,} notices more, which are left out") if left else tuple(kept)


def as_schedule(name: str, returned: object) -> Schedule:
    """What a scheduler returned. Raises PipebenchError for anything but a schedule."""
    if not isinstance(returned, FiniteSchedule | PeriodicSchedule):
        raise PluginFailed(f"scheduler {name!r} returned {type(returned).__name__}, not a schedule")
    return returned


def exact_schedule(name: str, returned: object) -> Schedule:
    """As `as_schedule`, every part of exactly its type."""
    return cast(Schedule, _exact(f"scheduler {name!r}", as_schedule(name, returned), Schedule))


def as_trace(name: str, returned: object) -> Trace:
    """What an executor returned. Raises PipebenchError for anything but a trace."""
    return _instance(f"executor {name!r}", returned, Trace)


def exact_trace(name: str, returned: object) -> Trace:
    """As `as_trace`, every part of exactly its type."""
    return cast(Trace, _exact(f"executor {name!r}", as_trace(name, returned), Trace))


def exact_graph(name: str, returned: object) -> OperatorGraph:
    """What a model returned, every part of exactly its type. Raises PipebenchError for others."""
    who = f"model {name!r}"
    return cast(OperatorGraph, _exact(who, _instance(who, returned, OperatorGraph), OperatorGraph))


def exact_profile(who: str, returned: object) -> Profile:
    """What a profiler or a format returned, every part of exactly its type. Raises PipebenchError for others."""
    return cast(Profile, _exact(who, _instance(who, returned, Profile), Profile))


def exact_cluster(who: str, returned: object) -> Cluster:
    """What a profiler measured of links, every part of exactly its type. Raises PipebenchError for others."""
    return cast(Cluster, _exact(who, _instance(who, returned, Cluster), Cluster))


def exact_value(who: str, returned: object, kind: Any) -> Any:
    """Any value that `kind` describes, every part of exactly its type. Raises PipebenchError for others."""
    return _exact(who, returned, kind)


def _instance(who: str, returned: object, kind: type[T]) -> T:
    if not isinstance(returned, kind):
        raise PluginFailed(f"{who} returned {type(returned).__name__}, not of type {kind.__name__}")
    return returned


def _exact(who: str, value: object, kind: Any, name: str = "") -> Any:
    name = name or f"a {type(value).__name__}"
    try:
        return msgspec.convert(msgspec.to_builtins(value, enc_hook=_plain), kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).rpartition(" - at ")
        where = f"at {path.strip('`').removeprefix('$.')}: {what}" if what else str(error)
        raise PluginFailed(f"{who} returned {name} with a wrong value {where}") from None
    except Exception as error:  # to_builtins meets whatever the plugin put in
        raise PluginFailed(f"{who} returned {name} that cannot be read: {first_line(error)}") from None


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy and its kin as Python's, subclasses of plain types as their base."""
    if hasattr(value, "tolist"):
        return value.tolist()
    for base in (str, int, float):
        if isinstance(value, base):
            return base(value)
    raise TypeError(f"it holds a value of type {type(value).__name__}")
