"""Rows of a figure by where they stand and whose they are; cases of a claim."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipebench.algorithms.balance import BALANCE
from pipebench.domain.artefact import Claim, Curve, Finding, Judgement, Result
from pipebench.domain.row import Row
from pipebench_rannc.figures.contenders import Contender

Place = tuple[str | float, ...]
NO_PLAN = ("infeasible", "invalid_plan")


@dataclass(frozen=True, slots=True)
class Measured:
    """rows: by place, the values of the axes in `axes`, and the contender's key. lost: a line for each trouble."""

    axes: tuple[str, ...]
    rows: Mapping[Place, Mapping[str, Row]]
    lost: tuple[str, ...]

    def throughput(self, place: Place, who: Contender) -> float | None:
        """Samples a second of its plan, None where it has none or was not run."""
        row = self.rows[place].get(who.key)
        return row.throughput if row is not None and row.status == "ok" else None

    def infeasible(self, place: Place, who: Contender) -> bool:
        """Whether it was run there and has no plan."""
        row = self.rows[place].get(who.key)
        return row is not None and row.status in NO_PLAN

    def told(self, place: Place, who: Contender) -> str:
        """Throughput and balance in words."""
        found = self.throughput(place, who)
        if found is None:
            return f"{who.label} has no plan"
        row = self.rows[place][who.key]
        balance = row.counters.get(BALANCE)
        shape = f"{row.stages} stages" + (f", balance {balance / 1000:.2f}" if balance else "")
        return f"{who.label} {found:.4g}/s ({shape})"

    def curve(self, along: Sequence[Place], axis: int, who: Contender) -> Curve:
        """Throughput by the axis of that position."""
        points = [(float(p[axis]), t) for p in along if (t := self.throughput(p, who)) is not None]
        missing = tuple(float(place[axis]) for place in along if self.infeasible(place, who))
        return Curve(label=who.label, colour=who.colour, points=tuple(points), infeasible=missing)


def measured(results: Sequence[Result], *axes: str) -> Measured:
    """All rows by the values of these axes, in the order of the cells."""
    rows: dict[Place, dict[str, Row]] = {}
    lost: dict[str, int] = {}
    for result in results:
        at, row = result.cell.at, result.row
        if row.status not in ("ok", *NO_PLAN):
            trouble = f"{result.cell.planner}: {row.status}: {row.reason}"
            lost[trouble] = lost.get(trouble, 0) + 1
        rows.setdefault(tuple(at[axis] for axis in axes), {})[str(at["series"])] = row
    return Measured(axes, rows, tuple(f"{count} x {text}" for text, count in lost.items()))


@dataclass(frozen=True, slots=True)
class Case:
    """One place of a claim. value: the figure that decides."""

    text: str
    value: float
    holds: bool


def judged(claim: Claim, found: Sequence[Case], rule: str, why: str = "") -> Finding:
    """`holds` or `does not hold` where all cases agree, else `depends`. why: what is known of those against it.

    The finding's value is that of the case least in favour: of those against the smallest, else of all.
    """
    if not found:
        return Finding(
            claim=claim, judgement="claim only", reason="no cells with plans of those that are compared"
        )
    against = [case for case in found if not case.holds]
    judgement: Judgement = "holds" if not against else "depends" if len(against) < len(found) else "does not hold"
    reason = rule if not against else f"{rule}; not so in {len(against)} of {len(found)} cases. {why}".strip()
    return Finding(
        claim=claim,
        measured=tuple(case.text for case in found),
        value=min(case.value for case in against or found),
        judgement=judgement,
        reason=reason,
    )
