"""A periodic schedule from instants: each is split into a start within the period and an index shift."""

from collections.abc import Sequence

from pipebench.domain.schedule import PeriodicSchedule

Run = tuple[int, str, int]
"""Stage, kind (F or B), instant in ns at which micro-batch 0 starts."""
Send = tuple[int, int, str, int]
"""Source and target stage, kind, instant in ns."""


def placed_schedule(period: int, runs: Sequence[Run], sends: Sequence[Send]) -> PeriodicSchedule:
    """The schedule that repeats these operations and transfers every period (ns)."""
    return PeriodicSchedule(
        period_ns=period,
        stage=tuple(stage for stage, _, _ in runs),
        kinds="".join(kind for _, kind, _ in runs),
        start_ns=tuple(start % period for _, _, start in runs),
        shift=tuple(start // period for _, _, start in runs),
        source=tuple(source for source, _, _, _ in sends),
        target=tuple(target for _, target, _, _ in sends),
        transfer_kinds="".join(kind for _, _, kind, _ in sends),
        transfer_start_ns=tuple(start % period for _, _, _, start in sends),
        transfer_shift=tuple(start // period for _, _, _, start in sends),
    )
