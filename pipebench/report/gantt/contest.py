"""Plans for one problem as timelines on one time axis, with the time that no plan beats."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipebench.documents.units import readable_seconds
from pipebench.report.chart.colours import INK
from pipebench.report.chart.elements import LETTER, SIZE, document, hint, line, text, upright_dashes
from pipebench.report.gantt.gantt import MANY, Gantt, without_short_bars
from pipebench.report.gantt.svg import COLOURS, HEAD, MARGIN, SHORTEST, WIDTH, legend, time_axis

NAME, GAP, BELOW = 20.0, 10.0, 40.0
"""Pixels of a title, above a plan (twice above a contest), and below all."""
PLAN_HEIGHT, TALLEST, LOWEST = 224.0, 14.0, 4.0
"""Pixels of all lanes of a plan where they can be so high; of the tallest and the lowest lane."""
LABEL = 13.0
"""Pixels from one label of a lane to the next, at least."""
SEAM, LEAST_WITH_SEAM = 0.5, 2.5
"""Pixels that a bar ends early, so that it is told from the next one, and of the shortest bar that does so."""
END = 64.0
"""Pixels for the time at the end of the longest plan."""


@dataclass(frozen=True, slots=True)
class PlanTimeline:
    """A plan. words: its name and what is said of it. gantt: its devices while one mini-batch runs; no links."""

    words: str
    gantt: Gantt


@dataclass(frozen=True, slots=True)
class Contest:
    """Plans that are ranked against each other, best first. bound_ns: the time that no plan beats, if known."""

    title: str
    plans: Sequence[PlanTimeline]
    bound_ns: float | None


def contests_svg(contests: Sequence[Contest], title: str) -> str:
    """The timelines as an SVG file, one under the other, all on one scale of time.

    A dashed line through the plans of a contest is its bound.
    """
    gantts = [plan.gantt for contest in contests for plan in contest.plans]
    bounds = [contest.bound_ns or 0 for contest in contests]
    longest = max([1, *(each.until_ns for each in gantts), *(round(each) for each in bounds)])
    scale = WIDTH / longest
    left = MARGIN + LETTER * max((len(row.label) for each in gantts for row in each.rows), default=0) + 8
    drawn: list[str] = []
    top = HEAD
    for contest in contests:
        drawn.append(text(MARGIN, top + SIZE, contest.title, bold=True))
        top += NAME
        lanes: list[tuple[float, float]] = []
        for plan in contest.plans:
            elements, bottom = _plan(plan, left, top, scale)
            drawn += elements
            lanes.append((top + NAME, bottom))
            top = bottom + GAP
        if contest.bound_ns is not None:
            drawn += _bound(contest.bound_ns, left, scale, lanes)
        top += GAP
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *legend(gantts, MARGIN)]
    inside += [*time_axis(longest, None, left, top), *drawn]
    described = "; ".join(f"{contest.title}: {plan.words}" for contest in contests for plan in contest.plans)
    return document(left + WIDTH + END, top + BELOW, title, inside, described)


def _bound(bound_ns: float, left: float, scale: float, lanes: Sequence[tuple[float, float]]) -> Iterator[str]:
    """A line through the lanes of each plan, its words above the first. lanes: top and bottom by plan."""
    if not lanes:
        return
    x = left + bound_ns * scale
    words = f"no plan beats {readable_seconds(bound_ns / 1e9)}"
    anchor = "end" if x - LETTER * len(words) > left else "start"
    yield text(x, lanes[0][0] - 2 * NAME + SIZE, words, anchor=anchor)
    lines = "".join(upright_dashes(x, top - 2, bottom + 2, INK) for top, bottom in lanes)
    yield f'<g class="bound">{hint(words)}{lines}</g>'


def _plan(plan: PlanTimeline, left: float, top: float, scale: float) -> tuple[list[str], float]:
    """A name and its lanes, and where they end."""
    shown, notes = without_short_bars(plan.gantt, round(SHORTEST / scale))
    inside = [text(MARGIN, top + SIZE, "; ".join([plan.words, *notes]))]
    top += NAME
    pitch = min(TALLEST, max(LOWEST, PLAN_HEIGHT / max(1, len(shown.rows))))
    every = max(1, round(LABEL / pitch + 0.49))
    for position, row in enumerate(shown.rows):
        if position % every == 0:
            inside.append(
                text(left - 8, top + pitch * position + max(pitch, SIZE) / 2 + 4, row.label, anchor="end")
            )
    inside.append(f"<g>{hint(plan.words)}")
    inside += _lanes(shown, left, top, pitch, scale)
    inside.append("</g>")
    bottom = top + pitch * len(shown.rows)
    x = left + shown.until_ns * scale
    inside.append(line(x, top - 2, x, bottom))
    inside.append(text(x + 5, (top + bottom) / 2 + 4, readable_seconds(shown.until_ns / 1e9)))
    return inside, bottom


def _lanes(shown: Gantt, left: float, top: float, pitch: float, scale: float) -> Iterator[str]:
    """All bars of a kind as the strokes of one path: a mini-batch has thousands. Those of a device's later stages
    are paler.
    """
    found: dict[tuple[str, bool], list[str]] = {}
    for position, row in enumerate(shown.rows):
        first = min((bar.stage for bar in row.bars), default=0)
        strokes: dict[tuple[str, bool], list[tuple[float, float]]] = {}
        for bar in row.bars:
            begin, end = (round(left + ns * scale, 1) for ns in (bar.start_ns, bar.end_ns))
            seam = SEAM if end - begin >= LEAST_WITH_SEAM else 0.0
            paler = bar.stage > first and bar.kind != MANY
            strokes.setdefault((bar.kind, paler), []).append((begin, end - seam))
        for key, ends in strokes.items():
            found.setdefault(key, []).append(_strokes(ends, top + pitch * (position + 0.5)))
    for (kind, paler), paths in sorted(found.items()):
        opacity = ' stroke-opacity="0.5"' if paler else ""
        style = f'fill="none" stroke="{COLOURS[kind]}"{opacity} stroke-width="{pitch - 1:g}"'
        yield f'<path d="{"".join(paths)}" {style} class="{kind}"/>'


def _strokes(ends: Sequence[tuple[float, float]], y: float) -> str:
    """Level strokes from left to right; each begins at a distance from the end of the one before."""
    pen = ends[0][0]
    parts = [f"M{pen:g} {y:g}"]
    for begin, end in ends:
        parts.append(f"m{round(begin - pen, 1):g} 0" if begin != pen else "")
        parts.append(f"h{round(end - begin, 1):g}")
        pen = end
    return "".join(parts)
