"""The heat map of a page: how much faster one contender is than another over two axes of the problems.

What is drawn here shows without scripts; heat_map.js draws the other choices, and its cells read as these do.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from pipebench.bench.standings.axes import ProblemAxis, crossed_pairs
from pipebench.bench.standings.ratios import TimeRatio, time_ratio
from pipebench.domain.problem import RegimeMode
from pipebench.report.html.problem_grid import ProblemGrid
from pipebench.report.html.template import fragment
from pipebench.report.text.comparisons.blocks import NOT_RUN, STATUS_WORDS

STRONGEST = 60.0
"""Percent of the colour where one needs twice the time of the other; words stay readable on it."""


@dataclass(frozen=True, slots=True)
class HeatCell:
    """style: how it looks besides its words. part: percent of its colour."""

    words: str
    style: str
    part: float
    hint: str


@dataclass(frozen=True, slots=True)
class HeatChoice:
    """What is drawn: a regime, two contenders, and the axes down and across the page."""

    regime: RegimeMode
    first: str
    second: str
    down: ProblemAxis
    across: ProblemAxis


def heat_section(grid: ProblemGrid) -> Markup | None:
    """The section with its controls; None where the problems span no grid, or nobody can be compared."""
    choice = first_choice(grid)
    if choice is None:
        return None
    lines = [
        (value, [heat_cell(_ratio(grid, choice, each)) for each in _problems_in(grid, choice, row)])
        for row, value in enumerate(choice.down.values)
    ]
    return Markup(
        fragment(
            "heat_map.html",
            grid=grid,
            choice=choice,
            lines=lines,
            summary=", ".join(summary(_ratio(grid, choice, grid.problems))),
        )
    )


def first_choice(grid: ProblemGrid) -> HeatChoice | None:
    """The largest grid of two axes, and the first two contenders in the first regime in which two ran."""
    pairs = crossed_pairs(grid.axes)
    for regime in grid.regimes if pairs else ():
        names = [name for name in grid.contenders if name in grid.cells[regime]]
        if len(names) > 1:
            return HeatChoice(regime, names[0], names[1], *pairs[0])
    return None


def heat_cell(ratio: TimeRatio) -> HeatCell:
    """One cell. What colours say its words say too."""
    counted = ratio.both + ratio.only_first + ratio.only_second + ratio.neither
    uncounted = ratio.untaken + ratio.unrun
    hint = ", ".join(summary(ratio))
    if ratio.ratio is not None:
        words = figure(ratio.ratio)
        if ratio.both < counted + uncounted:
            words += f" ({ratio.both}/{counted + uncounted})"
        part = round(STRONGEST * min(1.0, abs(math.log2(ratio.ratio))), 1)
        return HeatCell(words, "slower" if ratio.ratio > 1 else "faster", part, hint)
    if not counted:
        words = STATUS_WORDS["unsupported"] if ratio.untaken else NOT_RUN if ratio.unrun else ""
        return HeatCell(words, "unsolved", 0.0, hint)
    if ratio.only_first and ratio.only_second:
        return HeatCell("A or B", "unsolved", 0.0, hint)
    if ratio.only_first or ratio.only_second:
        return HeatCell("A only" if ratio.only_first else "B only", "lone", 0.0, hint)
    return HeatCell("✕", "unsolved", 0.0, hint)


def figure(ratio: float) -> str:
    """A ratio with two digits behind the point."""
    return f"{ratio:.2f}"


def summary(ratio: TimeRatio) -> list[str]:
    """How often what was the case."""
    counts = (
        ("both have a plan", ratio.both),
        ("only A", ratio.only_first),
        ("only B", ratio.only_second),
        ("neither", ratio.neither),
        (STATUS_WORDS["unsupported"], ratio.untaken),
        (NOT_RUN, ratio.unrun),
    )
    mean = [] if ratio.ratio is None else [f"A / B {figure(ratio.ratio)}"]
    return [*mean, *(f"{words}: {count}" for words, count in counts if count)] or ["no such problem"]


def _ratio(grid: ProblemGrid, choice: HeatChoice, problems: Iterable[str]) -> TimeRatio:
    found = grid.cells[choice.regime]
    first, second = found[choice.first], found[choice.second]
    return time_ratio((first.get(problem), second.get(problem)) for problem in problems)


def _problems_in(grid: ProblemGrid, choice: HeatChoice, row: int) -> list[list[str]]:
    """The problems of each cell of a row."""
    found: list[list[str]] = [[] for _ in choice.across.values]
    for problem in grid.problems:
        if choice.down.of_problem[problem] == row:
            found[choice.across.of_problem[problem]].append(problem)
    return found
