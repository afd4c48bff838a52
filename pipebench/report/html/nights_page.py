"""The page of a history: every series as a small curve, its changes marked with their commits.

Nothing is fetched and nothing runs on a server: the file opens from a folder as it does from a site.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from markupsafe import Markup

from pipebench.documents.printable import markup
from pipebench.documents.units import readable_seconds
from pipebench.report.html.template import page, picture
from pipebench.report.tracking.blocks import EDGE, curve_places, curve_points
from pipebench.report.tracking.reports import (
    change_words,
    column_name,
    column_words,
    exact_words,
    percent,
    revision_range,
    verdict_words,
)
from pipebench.track.judgement.events import Event
from pipebench.track.judgement.judgement import Judgement
from pipebench.track.judgement.series import Group, Series, history_series
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.history import History

WIDTH, HEIGHT, FLAG = 260.0, 40.0, 7.0
"""Of a curve, in pixels; FLAG: of a mark above it."""
WHAT = {
    "search times": "CPU time of a search over that of the calibration beside it, the median of its processes.",
    "benchmarks": "CPU time over that of the reference kernel around it; seconds where there is no reference.",
    "counters of benchmarks": "Exact, on any machine.",
    "plans and work": "Exact, on any machine: the time and the memory of plans, the work of searches.",
}


@dataclass(frozen=True, slots=True)
class _Row:
    """One series as the page shows it."""

    name: str
    machine: str
    now: str
    value: float
    curve: Markup
    changes: Sequence[tuple[str, str]]
    nights: int


def nights_page(history: History, judgement: Judgement, title: str) -> str:
    """The whole file. Text of strangers stays text."""
    found = history_series(history, judgement.events)
    groups: list[dict[str, Any]] = []
    for group in get_args(Group):
        inside = [each for each in found if each.group == group]
        moving = [each for each in inside if each.unit in ("ratio", "seconds") or not each.is_constant]
        still = [each for each in inside if each not in moving]
        if inside:
            groups.append(
                {
                    "name": group.capitalize(),
                    "what": WHAT[group],
                    "moving": [_row(each) for each in _urgent_first(moving)],
                    "still": [_row(each) for each in still],
                    "machines": any(each.machine for each in inside),
                }
            )
    return page(
        "nights.html",
        title=title,
        verdict=verdict_words(judgement),
        worse=judgement.verdict == "worse",
        nights=judgement.nights,
        classes=[_class_row(history, machine) for machine in history.machines],
        events=[_event_row(event) for event in reversed(judgement.events)],
        groups=groups,
    )


def _urgent_first(series: Sequence[Series]) -> list[Series]:
    """Those with an open change first, otherwise as they came."""
    return sorted(series, key=lambda each: not any(event.fails for _, event in each.changes))


def _class_row(history: History, machine: MachineClass) -> tuple[str, int, str, str]:
    nights = history.of_class(machine)
    return machine.words, len(nights), nights[0].date, nights[-1].date


def _event_row(event: Event) -> dict[str, str]:
    return {
        "began": event.began[:10],
        "subject": event.subject,
        "what": _event_words(event),
        "where": revision_range(event),
        "state": event.state_words,
        "tone": _tone(event),
        "identity": event.identity,
    }


def _event_words(event: Event) -> str:
    if event.change is not None:
        return f"{'slower' if event.outcome == 'worse' else 'faster'}, {percent(event.change)}"
    return change_words(event.columns, event.failure)


def _tone(event: Event) -> str:
    if event.fails:
        return "failed"
    return "ok" if event.outcome == "better" else "depends"


def _row(series: Series) -> _Row:
    last = series.points[-1]
    changes = [
        (_tone(event), f"{event.began[:10]} {_short_words(event, series.column)} {revision_range(event)}".strip())
        for _, event in series.changes
    ]
    column = column_name(series.column).replace("work.", "")
    return _Row(
        name=f"{series.subject}: {column}" if column else series.subject,
        machine=series.machine,
        now=_value_words(series, last.value),
        value=last.value,
        curve=picture(_curve(series)),
        changes=changes,
        nights=len(series.points),
    )


def _short_words(event: Event, column: str) -> str:
    if event.change is not None:
        return percent(event.change)
    return "; ".join(column_words(change) for change in event.columns if change.name == column)


def _value_words(series: Series, value: float) -> str:
    if series.unit == "seconds":
        return readable_seconds(value)
    if series.unit == "ratio":
        return f"{value:.4g}"
    return exact_words(series.column, value)


def _curve(series: Series) -> str:
    """The nights from left to right; a flag and a stroke at each change, dots where a segment begins."""
    values = [point.value for point in series.points]
    places = curve_places(values, WIDTH, HEIGHT, above=FLAG)
    starts = "".join(
        f'<line class="segment" x1="{x:.1f}" y1="{FLAG + EDGE:.0f}" x2="{x:.1f}" y2="{HEIGHT:.0f}"><title>'
        f"{markup(point.moment[:10])}: other versions begin</title></line>"
        for (x, _), point in ((places[i], series.points[i]) for i in series.segments)
    )
    flags = "".join(_flag(places[i][0], event, series.column) for i, event in series.changes)
    x, y = places[-1]
    label = (
        f"{len(values)} nights, {_value_words(series, values[0])} to {_value_words(series, values[-1])}, "
        f"{len(series.changes)} changes"
    )
    return (
        f'<svg class="spark" width="{WIDTH:.0f}" height="{HEIGHT:.0f}" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
        f'role="img" aria-label="{markup(label)}">{starts}<polyline points="{curve_points(places)}"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4"/>{flags}</svg>'
    )


def _flag(x: float, event: Event, column: str) -> str:
    words = f"{event.began[:10]}: {_short_words(event, column)} {revision_range(event)} ({event.state})"
    return (
        f'<g class="change {_tone(event)}"><title>{markup(words)}</title>'
        f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{HEIGHT:.0f}"/>'
        f'<path d="M{x:.1f} 0h{FLAG:.0f}l-2 {FLAG / 2:.1f}l2 {FLAG / 2:.1f}h-{FLAG:.0f}z"/></g>'
    )
