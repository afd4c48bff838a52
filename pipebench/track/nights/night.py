"""Night: what one run of `track record` found, as it stands in the history."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import ClassVar

from msgspec import UNSET, UnsetType

from pipebench.domain.problem import RegimeMode
from pipebench.domain.value import Value, require

Exact = int | float | str | None
"""A column that does not depend on the machine's speed."""
GAP = timedelta(hours=36)
"""Between nights: more than this, and at least one night is missing."""
CLOCKS = timedelta(minutes=5)
"""By which two machines' clocks may differ."""


class TrackedSubject(Value, frozen=True, kw_only=True):
    """What is tracked: a planner on a workload. scheduler: as asked for, empty for the planner's own."""

    planner: str
    workload: str
    cluster: str
    devices: int
    mini_batch: int
    regime: RegimeMode
    scheduler: str = ""

    @property
    def label(self) -> str:
        """One line for tables."""
        with_scheduler = f" with {self.scheduler}" if self.scheduler else ""
        return f"{self.planner}{with_scheduler} on {self.workload}, {self.devices} x {self.cluster}, {self.regime}"


def six_digits(ratio: float) -> float:
    """A ratio as it is kept: a history is kept for years, and no ratio is known better."""
    return float(f"{ratio:.6g}")


class PairedRatios(Value, frozen=True, kw_only=True):
    """CPU time of searches over that of the calibration right before each.

    rounds: for each flavour of calibration the median of each process, in order. calibration: hash of the code of
    the calibrations, which is the unit. discarded: pairs whose search was off the CPU most of the time.
    imprecise: the budget ended before the median was known well enough.
    """

    rounds: dict[str, tuple[float, ...]]
    calibration: str
    discarded: int = 0
    imprecise: bool = False

    def __post_init__(self) -> None:
        require(all(ratio > 0 for ratios in self.rounds.values() for ratio in ratios), "a ratio is not above 0")


class NoPlan(Value, frozen=True, kw_only=True):
    """A subject for which a night has no plan. reason: empty where the night does not say it."""

    subject: str
    status: str
    reason: str

    @property
    def words(self) -> str:
        """One line."""
        return ": ".join(filter(None, (self.subject, self.status, self.reason)))


class SubjectNight(Value, frozen=True, kw_only=True):
    """One subject in one night.

    fingerprint: what starts a new segment when it changes. exact: the columns of which any change is an event;
    unsteady: those that differed between two runs of this very night. paired: None where no warm search was
    timed; again: the confirming rerun of a suspicious ratio, in processes of its own; twin: the same subject
    measured a second time in the same rounds (A/A). information: wall seconds, CPU seconds, bytes. reason: of a
    crash or a limit, not compared; left out in every other night, so that earlier ones keep their checksums.
    """

    subject: TrackedSubject
    fingerprint: dict[str, str]
    exact: dict[str, Exact]
    unsteady: tuple[str, ...] = ()
    paired: PairedRatios | None = None
    again: PairedRatios | None = None
    twin: PairedRatios | None = None
    information: dict[str, float] = {}
    reason: str | UnsetType = UNSET

    @property
    def label(self) -> str:
        """Its name in tables and events."""
        return self.subject.label

    @property
    def no_plan(self) -> NoPlan | None:
        """Why there is no plan, None where there is one."""
        status = str(self.exact.get("status"))
        if status == "ok":
            return None
        reason = self.reason or str(self.exact.get("reason") or "")
        return NoPlan(subject=self.label, status=status, reason=" ".join(reason.split()))

    @property
    def cause(self) -> str:
        """What may have become slower."""
        return self.subject.planner


class Benchmark(Value, frozen=True, kw_only=True):
    """One benchmark of pytest-benchmark in one night.

    name: file and function. seconds: of a call, by its own clock. counters: exact. fingerprint: what starts a new
    segment when it changes. paired: CPU time over that of a reference kernel around it, one ratio a process; None
    where it ran without one.
    """

    name: str
    seconds: dict[str, float]
    counters: dict[str, int] = {}
    fingerprint: dict[str, str] = {}
    paired: PairedRatios | None = None

    again: ClassVar[None] = None
    unsteady: ClassVar[tuple[str, ...]] = ()
    """Benchmarks are not run again in the same night, and counters that differ in it are left out."""

    @property
    def subject(self) -> str:
        """What is tracked: its name."""
        return self.name

    label = cause = subject

    @property
    def exact(self) -> Mapping[str, Exact]:
        """The columns of which any change is an event."""
        return self.counters


Measured = SubjectNight | Benchmark
"""What a night may have ratios of."""


class Weather(Value, frozen=True, kw_only=True):
    """How busy the machine was. load: one-minute averages before and after. pressure_share: of the time in which
    some process waited for a CPU; steal_share: taken by other guests; None where the system does not say.
    quota_cpus: of the control group, None: no limit.
    """

    load: tuple[float, float]
    pressure_share: float | None = None
    steal_share: float | None = None
    quota_cpus: float | None = None


class Night(Value, frozen=True, kw_only=True):
    """What a line of a history holds.

    recorded_at: UTC, ISO 8601. revision: of what is tracked (git), empty where there is none. budget_s, spent_s:
    seconds. benchmarks_at: when the imported benchmarks ran. notices: what the night could not do.
    """

    recorded_at: str
    revision: str = ""
    pipebench: str
    seed: int = 0
    budget_s: float
    spent_s: float
    weather: Weather
    measured: tuple[SubjectNight, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()
    benchmarks_at: str = ""
    notices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            moment = datetime.fromisoformat(self.recorded_at)
        except ValueError:
            moment = None
        require(
            moment is not None and moment.tzinfo is not None,
            f"recorded_at is {self.recorded_at!r}, it must be a moment with its time zone",
        )

    @property
    def at(self) -> datetime:
        """When it was recorded."""
        return datetime.fromisoformat(self.recorded_at)

    @property
    def date(self) -> str:
        """The day, as people say it."""
        return self.recorded_at[:10]

    @property
    def timed(self) -> tuple[Measured, ...]:
        """Everything that may have ratios."""
        return (*self.measured, *self.benchmarks)

    def of(self, subject: TrackedSubject) -> SubjectNight | None:
        """What was found of a subject."""
        return next((each for each in self.measured if each.subject == subject), None)
