"""Who was faster: the figures of a contest from its rows."""

from collections.abc import Sequence
from math import exp, log

import msgspec


class Row(msgspec.Struct, frozen=True):
    """One problem: seconds of a mini-batch under `best`, and under each planner that has a valid plan.

    limit_s: each planner's time. best_limit_s: that of `best`. best_by: the planner that its plan is of.
    """

    problem: str
    limit_s: float
    best_limit_s: float
    best_s: float | None
    best_by: str
    planners_s: dict[str, float]

    @property
    def ratio(self) -> float | None:
        """Seconds of `best` for each second of the fastest planner; None where nobody else has a plan."""
        if not self.planners_s:
            return None
        return float("inf") if self.best_s is None else self.best_s / min(self.planners_s.values())


class Standing(msgspec.Struct, frozen=True):
    """problems: those on which a planner has a plan. alone: only `best` has one.

    no_worse: `best` is as fast or faster. worst: the largest excess, as a share. better: it is strictly faster.
    gain: the geometric mean of how many times as fast it is there.
    """

    problems: int
    alone: int
    no_worse: int
    worst: float
    better: int
    gain: float


def standing(rows: Sequence[Row]) -> Standing:
    """Of all rows. Times are whole nanoseconds: no tolerance."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    faster = [ratio for ratio in ratios if ratio < 1]
    return Standing(
        problems=len(ratios),
        alone=sum(row.ratio is None and row.best_s is not None for row in rows),
        no_worse=sum(ratio <= 1 for ratio in ratios),
        worst=max([0.0, *(ratio - 1 for ratio in ratios)]),
        better=len(faster),
        gain=exp(sum(-log(ratio) for ratio in faster) / len(faster)) if faster else 1.0,
    )


def table(rows: Sequence[Row]) -> str:
    """A line a problem, in Markdown, and the figures."""
    lines = [
        "| problem | fastest planner | s | `best` | s | best / fastest |",
        "|---|---|---:|---|---:|---:|",
    ]
    for row in rows:
        first = min(row.planners_s, key=lambda name: (row.planners_s[name], name), default="-")
        theirs = f"{row.planners_s[first]:.6g}" if row.planners_s else "-"
        mine = "-" if row.best_s is None else f"{row.best_s:.6g}"
        ratio = "-" if row.ratio is None else f"{row.ratio:.4f}"
        lines.append(f"| {row.problem} | {first} | {theirs} | {row.best_by or '-'} | {mine} | {ratio} |")
    found = standing(rows)
    limits = sorted({(row.best_limit_s, row.limit_s) for row in rows})
    lines += [
        "",
        f"`best` with {', '.join(f'{mine:g} s against {theirs:g} s' for mine, theirs in limits)} of each planner: "
        f"no worse in {found.no_worse} of {found.problems}, worst excess {found.worst:.2%}, strictly better in "
        f"{found.better} by {found.gain - 1:.2%} (geometric mean); alone with a plan in {found.alone}.",
    ]
    return "\n".join(lines)
