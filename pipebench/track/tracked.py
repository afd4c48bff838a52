"""One subject while it is measured."""

from dataclasses import dataclass, field

from pipebench.bench.trials.trial import Outcome, Trial
from pipebench.track.exact import changed_columns, exact_columns
from pipebench.track.fingerprint import fingerprint
from pipebench.track.night import Measured, Subject
from pipebench.track.paired import Gathered

INFORMATION = ("search_cpu_s", "search_wall_s", "search_cold_s", "search_peak_bytes")


@dataclass(slots=True)
class Tracked:
    """own, twin, again: the rounds of the subject, of its A/A twin and of its confirming rerun.

    cost_s: wall seconds of its last run, process and scoring included. unsteady: exact columns that two runs of
    this night disagree on.
    """

    trial: Trial
    subject: Subject
    outcome: Outcome | None = None
    own: Gathered = field(default_factory=Gathered)
    twin: Gathered | None = None
    again: Gathered | None = None
    unsteady: set[str] = field(default_factory=set)
    cost_s: float = 0.0

    @property
    def timed(self) -> bool:
        """Whether its searches are short enough to be timed warm, also where the first pairs were of no use."""
        return self.own.processes > 0

    @property
    def search_s(self) -> float:
        """CPU seconds of its search."""
        return (self.outcome.row.search_cpu_s if self.outcome else None) or 0.0

    def compare(self, again: Outcome) -> None:
        """Another run of this night: what differs is not judged."""
        assert self.outcome is not None
        both = exact_columns(self.outcome.row), exact_columns(again.row)
        self.unsteady.update(changed_columns(*both))

    def measured(self) -> Measured:
        """What goes into the history."""
        assert self.outcome is not None
        row = self.outcome.row
        figures = {name: getattr(row, name) for name in INFORMATION}
        return Measured(
            subject=self.subject,
            fingerprint=fingerprint(self.trial, row),
            exact=exact_columns(row),
            unsteady=tuple(sorted(self.unsteady)),
            paired=self.own.paired(),
            again=self.again.paired() if self.again else None,
            twin=self.twin.paired() if self.twin else None,
            information={name: float(value) for name, value in figures.items() if value is not None},
        )


def subject_of(trial: Trial) -> Subject:
    """The name under which a trial goes through the nights."""
    workload = trial.workload
    return Subject(
        planner=trial.planner.label,
        workload=workload.name or workload.model,
        cluster=workload.cluster.name,
        devices=workload.cluster.size,
        mini_batch=workload.mini_batch,
        regime=trial.regime,
        scheduler=trial.scheduler or "",
    )
