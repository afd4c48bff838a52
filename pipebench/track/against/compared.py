"""What two revisions differ in: exact columns from their first run, speed from the pairs of all runs."""

import math
from collections.abc import Mapping, Sequence

from pipebench.bench.standings.cells import nanoseconds
from pipebench.domain.value import Value
from pipebench.track.against.run import OtherRow
from pipebench.track.event import Column
from pipebench.track.exact import PLAN, SCHEDULE, WORK, Outcome, changed_columns, outcome
from pipebench.track.night import Exact
from pipebench.track.paired import FLAVOUR
from pipebench.track.pairs import Pairs, compare_pairs


class ComparedSubject(Value, frozen=True, kw_only=True):
    """One planner on one workload on both sides. outcome, columns: of exact columns, None where none differs."""

    subject: str
    pairs: Pairs
    outcome: Outcome | None = None
    columns: tuple[Column, ...] = ()
    notice: str = ""


class Against(Value, frozen=True, kw_only=True):
    """The answer. calibrated: times were divided by the calibration beside them, which both sides have alike."""

    distribution: str
    before: str
    after: str
    subjects: tuple[ComparedSubject, ...]
    calibrated: bool
    notices: tuple[str, ...] = ()

    @property
    def worse(self) -> bool:
        """Whether anything is slower or worse than it was."""
        return any(each.outcome == "worse" or each.pairs.answer == "slower" for each in self.subjects)


class Sums:
    """The pairs of all runs, by subject."""

    def __init__(self, calibrated: bool) -> None:
        self._calibrated = calibrated
        self._first: dict[str, tuple[OtherRow | None, OtherRow | None]] = {}
        self.logs: dict[str, list[float]] = {}

    def add(self, before: Sequence[OtherRow], after: Sequence[OtherRow]) -> None:
        """Two runs next to each other."""
        old, new = _by_label(before), _by_label(after)
        for label in dict.fromkeys((*old, *new)):
            both = old.get(label), new.get(label)
            self._first.setdefault(label, both)
            logs = self.logs.setdefault(label, [])
            values = [self._time(row) for row in both]
            if values[0] is not None and values[1] is not None:
                logs.append(math.log(values[1] / values[0]))

    def subjects(self) -> tuple[ComparedSubject, ...]:
        """The answer for each."""
        answers = compare_pairs(list(self.logs.values()))
        return tuple(
            _compared(label, *self._first[label], pairs) for label, pairs in zip(self.logs, answers, strict=True)
        )

    def _time(self, row: OtherRow | None) -> float | None:
        """Warm CPU time of a search, over the calibration beside it where that is the same code on both sides."""
        if row is None or row.parallel or not row.search_samples:
            return None
        time = row.search_ratio.get(FLAVOUR) if self._calibrated else row.search_cpu_s
        return time if time is not None and time > 0 else None


def _compared(label: str, before: OtherRow | None, after: OtherRow | None, pairs: Pairs) -> ComparedSubject:
    if before is None or after is None:
        return ComparedSubject(
            subject=label, pairs=pairs, notice=f"only {'after' if before is None else 'before'}"
        )
    if before.problem_id != after.problem_id:
        notice = "the problem itself is another one: its profile, cluster or pins changed"
        return ComparedSubject(subject=label, pairs=pairs, notice=notice)
    old, new = _exact(before), _exact(after)
    names = changed_columns(old, new)
    columns = tuple(Column(name=name, before=old.get(name), after=new.get(name)) for name in names)
    return ComparedSubject(
        subject=label, pairs=pairs, outcome=outcome(old, new, names) if names else None, columns=columns
    )


def _exact(row: OtherRow) -> Mapping[str, Exact]:
    times = {"simulated_ns": row.simulated_s, "estimated_ns": row.estimated_s}
    found: dict[str, Exact] = {"status": row.status, "scheduler": row.scheduler, "memory_bytes": row.memory_bytes}
    found |= {name: None if value is None else nanoseconds(value) for name, value in times.items()}
    found |= {"stages": row.stages, PLAN: row.plan_id, SCHEDULE: row.schedule_id}
    return found | {f"{WORK}{name}": count for name, count in sorted(row.counters.items())}


def _by_label(rows: Sequence[OtherRow]) -> dict[str, OtherRow]:
    return {row.label: row for row in rows}
