"""Figures of tracking in words: exact ones to the last digit."""

from pipebench.track.event import Column, Event
from pipebench.track.exact import PLAN, SCHEDULE
from pipebench.track.night import Exact

HASH_LETTERS = 8
SMALL = 1e-4


def column_words(column: Column) -> str:
    """`simulated 452,374,773 ns -> 452,375,225 ns (+1 ppm)`."""
    before, after = (exact_words(column.name, value) for value in (column.before, column.after))
    change = relative(column.before, column.after)
    name = column.name.removesuffix("_ns").removesuffix("_bytes").replace("_", " ").replace("work.", "work: ")
    return f"{name} {before} -> {after}{f' ({change})' if change else ''}"


def exact_words(name: str, value: Exact) -> str:
    """A value with all its digits and its unit."""
    if value is None or value == "":
        return "none"
    if isinstance(value, str):
        return value[:HASH_LETTERS] if name in (PLAN, SCHEDULE) else value
    unit = " ns" if name.endswith("_ns") else " bytes" if name.endswith("_bytes") else ""
    return f"{value:,}{unit}"


def relative(before: Exact, after: Exact) -> str:
    """The relative change of two figures; parts in a million where a percentage would hide it."""
    if not isinstance(before, int | float) or not isinstance(after, int | float) or not before or before == after:
        return ""
    change = (after - before) / before
    return f"{change * 1e6:+.3g} ppm" if abs(change) < SMALL else percent(change)


def percent(change: float) -> str:
    """A signed percentage."""
    return f"{100 * change:+.3g} %"


def between(event: Event) -> str:
    """Which revisions a change lies between."""
    if not event.before or not event.after:
        return ""
    if event.before == event.after:
        return f"at revision {event.after}"
    return f"between {event.before} and {event.after}"
