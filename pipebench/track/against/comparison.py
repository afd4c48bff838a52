"""Two installed revisions run in turns (A-B-B-A) and compared: exact columns, and speed from pairs."""

import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from pipebench.bench.searches import calibration
from pipebench.bench.standings.cells import nanoseconds
from pipebench.documents.units import quantity
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.value import Value
from pipebench.track.against.installation import Side, Sides
from pipebench.track.judgement.events import ColumnChange
from pipebench.track.measurement.ratios import FLAVOUR
from pipebench.track.nights.exact import PLAN, SCHEDULE, WORK, Outcome, changed_columns, outcome
from pipebench.track.nights.night import Exact
from pipebench.track.rule.statistics import SEEN, Pairs, compare_pairs, half_width

TIMED = (ExitCode.OK, ExitCode.SOME_FAILED)


class OtherRow(msgspec.Struct):
    """What is read of a row that another version of pipebench wrote: fields that it lacks are left at None."""

    planner: str
    regime: str
    problem_id: str
    status: str
    profile: str = ""
    workload: str = ""
    cluster: str = ""
    devices: int = 0
    mini_batch: int = 0
    scheduler: str = ""
    reason: str = ""
    search_cpu_s: float | None = None
    search_ratio: dict[str, float] = {}
    search_samples: list[tuple[float, float]] = []
    parallel: bool = False
    simulated_s: float | None = None
    estimated_s: float | None = None
    memory_bytes: int | None = None
    stages: int | None = None
    counters: dict[str, int] = {}
    plan_id: str | None = None
    schedule_id: str | None = None

    @property
    def label(self) -> str:
        """Which trial it is, the same on both sides."""
        return f"{self.planner} on {self.workload or self.profile}, {self.devices} x {self.cluster}, {self.regime}"


class _Rows(msgspec.Struct):
    rows: list[OtherRow]


@dataclass(frozen=True, slots=True)
class Run:
    """The rows of one run, and the wall seconds it took with all that surrounds them."""

    rows: Sequence[OtherRow]
    wall_s: float


class TimeSpent(Exception):
    """A run did not end within its time."""


def run_side(side: Side, arguments: Sequence[str], folder: Path, limit_s: float) -> Run:
    """One run of the command on one side, from the user's folder.

    Raises PipebenchError when it gives no rows, TimeSpent when it does not end within limit_s.
    """
    words = [sys.executable, "-P", "-m", "pipebench", "compare", "--json", *arguments]
    began = time.monotonic()
    try:
        done = subprocess.run(
            words, capture_output=True, env=side.environment(), cwd=folder, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise TimeSpent from None
    except OSError as error:
        raise PipebenchError(f"{side.name}: {error}") from None
    wall_s = time.monotonic() - began
    if done.returncode not in TIMED:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise PipebenchError(f"{side.name}: pipebench compare ended with exit code {done.returncode}: {lines[-1]}")
    try:
        return Run(msgspec.json.decode(done.stdout, type=_Rows).rows, wall_s)
    except msgspec.MsgspecError as error:
        raise PipebenchError(f"{side.name}: pipebench compare gave no rows: {error}") from None


class ComparedSubject(Value, frozen=True, kw_only=True):
    """One planner on one workload on both sides. outcome, columns: of exact columns, None where none differs.

    failure: why there is no plan after, where there was one. unknown: why it is not known that it became no worse;
    empty where that is known, or that it became worse.
    """

    subject: str
    pairs: Pairs
    outcome: Outcome | None = None
    columns: tuple[ColumnChange, ...] = ()
    failure: str = ""
    notice: str = ""
    unknown: str = ""


Verdict = Literal["worse", "inconclusive", "no worse"]


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

    @property
    def verdict(self) -> Verdict:
        """What is not known to be as good is no pass: what was not timed, or where +10 % cannot be told."""
        if self.worse:
            return "worse"
        return "no worse" if self.subjects and not any(each.unknown for each in self.subjects) else "inconclusive"

    @property
    def exit_code(self) -> ExitCode:
        """Of the process."""
        codes = {
            "worse": ExitCode.CONDITION_FAILED,
            "inconclusive": ExitCode.INCONCLUSIVE,
            "no worse": ExitCode.OK,
        }
        return codes[self.verdict]


class Sums:
    """The pairs of all runs, by subject. calibrated: as of `same_calibration`."""

    def __init__(self, calibrated: bool) -> None:
        self.calibrated = calibrated
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

    @property
    def are_precise(self) -> bool:
        """Whether each series is known to 1.5 %."""
        return all(half_width(logs) < PRECISE for logs in self.logs.values() if logs)

    def subjects(self) -> tuple[ComparedSubject, ...]:
        """The answer for each."""
        answers = compare_pairs(list(self.logs.values()))
        return tuple(
            _compare_subject(label, *self._first[label], pairs)
            for label, pairs in zip(self.logs, answers, strict=True)
        )

    def _time(self, row: OtherRow | None) -> float | None:
        """Warm CPU time of a search, over the calibration beside it where that is the same code on both sides."""
        if row is None or row.parallel or not row.search_samples:
            return None
        time = row.search_ratio.get(FLAVOUR) if self.calibrated else row.search_cpu_s
        return time if time is not None and time > 0 else None


def _compare_subject(label: str, before: OtherRow | None, after: OtherRow | None, pairs: Pairs) -> ComparedSubject:
    if before is None:
        return ComparedSubject(subject=label, pairs=pairs, notice="only after")
    if after is None:
        return ComparedSubject(subject=label, pairs=pairs, notice="only before", unknown="it is gone")
    if before.problem_id != after.problem_id:
        notice = "the problem itself is another one: its profile, cluster or pins changed"
        return ComparedSubject(subject=label, pairs=pairs, notice=notice, unknown="the problem is another one")
    old, new = _exact(before), _exact(after)
    names = changed_columns(old, new)
    columns = tuple(ColumnChange(name=name, before=old.get(name), after=new.get(name)) for name in names)
    found = outcome(old, new, names) if names else None
    timed = before.status == after.status == "ok" and found != "worse"
    unknown = _untold(pairs) if timed else ""
    failure = after.reason if before.status == "ok" != after.status else ""
    return ComparedSubject(
        subject=label, pairs=pairs, outcome=found, columns=columns, failure=failure, unknown=unknown
    )


def _untold(pairs: Pairs) -> str:
    """Why the pairs do not tell that a search became no slower; empty where they do."""
    if not pairs.count:
        return "no search was timed"
    if pairs.excludes_a_change:
        return ""
    return f"{quantity(pairs.count, 'pair')} did not tell +{SEEN:.0%}; some {pairs.enough} pairs would"


def _exact(row: OtherRow) -> Mapping[str, Exact]:
    times = {"simulated_ns": row.simulated_s, "estimated_ns": row.estimated_s}
    found: dict[str, Exact] = {"status": row.status, "scheduler": row.scheduler, "memory_bytes": row.memory_bytes}
    found |= {name: None if value is None else nanoseconds(value) for name, value in times.items()}
    found |= {"stages": row.stages, PLAN: row.plan_id, SCHEDULE: row.schedule_id}
    return found | {f"{WORK}{name}": count for name, count in sorted(row.counters.items())}


def _by_label(rows: Sequence[OtherRow]) -> dict[str, OtherRow]:
    return {row.label: row for row in rows}


FEWEST_PAIRS, USUAL_PAIRS, MOST_PAIRS = 9, 15, 60
PRECISE = 0.015
SAMPLES = 5
"""Warm searches in one process."""

Runner = Callable[[Side, Sequence[str], Path, float], Run]


def compare_sides(
    sides: Sides,
    arguments: Sequence[str],
    folder: Path,
    budget_s: float,
    told: Callable[[int, int], None] | None = None,
    run: Runner = run_side,
) -> Against:
    """Pairs of runs until every subject is known to 1.5 %, or there are 15, and more would not tell +10 %.

    arguments: of `pipebench compare`. One run of each side comes first and is not looked at: it compiles kernels.
    budget_s: of all runs, what they wait for others included; when it ends, so does the run that is on its way.
    told: called with the pairs done and the most there will be. Raises PipebenchError when a side gives no rows.
    """
    ends = time.monotonic() + budget_s
    words = [*arguments, "--repeat", str(SAMPLES)]
    sums = Sums(calibrated=same_calibration(sides))

    def run_within(side: Side) -> Run:
        return run(side, words, folder, max(0.0, ends - time.monotonic()))

    def pairs() -> Iterator[int]:
        """Runs pair after pair; gives the number that are done."""
        for side in (sides.before, sides.after):
            if not run_within(side).rows:
                raise PipebenchError(f"{side.name}: nothing ran", exit_code=ExitCode.NOTHING_RAN)
        for number in range(MOST_PAIRS):
            if told is not None:
                told(number, MOST_PAIRS)
            order = (sides.before, sides.after) if number % 2 == 0 else (sides.after, sides.before)
            runs = {side.name: run_within(side) for side in order}
            sums.add(runs[sides.before.name].rows, runs[sides.after.name].rows)
            yield number + 1
            if time.monotonic() + sum(each.wall_s for each in runs.values()) > ends:
                raise TimeSpent

    notices, done = [], 0
    try:
        for done in pairs():
            enough = done >= USUAL_PAIRS or (done >= FEWEST_PAIRS and sums.are_precise)
            if enough and all(each.pairs.enough is None for each in sums.subjects()):
                break
    except TimeSpent:
        notices.append(f"the budget of {budget_s:g} s ended after {quantity(done, 'pair')}")
    return Against(
        distribution=sides.distribution,
        before=sides.before.name,
        after=sides.after.name,
        subjects=sums.subjects(),
        calibrated=sums.calibrated,
        notices=tuple(notices),
    )


def same_calibration(sides: Sides) -> bool:
    """Whether both sides calibrate with the same code: else their ratios have different units."""
    return _calibration(sides.before) == _calibration(sides.after)


def _calibration(side: Side) -> bytes:
    return (side.file("bench/searches/calibration.py") or Path(calibration.__file__)).read_bytes()
