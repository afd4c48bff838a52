"""Nights as `track record` would leave them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pipebench.bench.store import Store
from pipebench.domain.plan import Plan
from pipebench.track.nights.conditions import MachineClass
from pipebench.track.nights.history import NightJournal, StoredNight
from pipebench.track.nights.night import Night, PairedRatios, SubjectNight, TrackedSubject, Weather

MACHINE = MachineClass(system="Linux", machine="x86_64", cpu="Test CPU", cpus="4")
OTHER = MachineClass(system="Linux", machine="x86_64", cpu="Other CPU", cpus="4")
FIRST = datetime(2026, 1, 1, 2, 23, tzinfo=UTC)
FINGERPRINT = {"problem": "p", "planner": "mine 1.0", "numpy": "2.0"}
EXACT = {"status": "ok", "simulated_ns": 452_374_773, "memory_bytes": 1000, "plan": None, "work.states": 10}
KINDS = (Store, NightJournal)
FOUR_FLAVOURS = ("interpreter", "numpy", "solver")


def subject(planner: str = "mine", workload: str = "tiny") -> TrackedSubject:
    return TrackedSubject(
        planner=planner, workload=workload, cluster="flat", devices=4, mini_batch=16, regime="sync"
    )


def paired(ratio: float, rounds: int = 5, calibration: str = "c", **fields: Any) -> PairedRatios:
    """Every process gave the same ratio."""
    return PairedRatios(rounds={"interpreter": (ratio,) * rounds}, calibration=calibration, **fields)


def measured(ratio: float | None = None, again: float | None = None, **fields: Any) -> SubjectNight:
    """exact: columns that replace the usual ones."""
    known: dict[str, Any] = {"subject": subject(), "fingerprint": FINGERPRINT}
    exact = EXACT | fields.pop("exact", {})
    ratios = {"paired": ratio, "again": again}
    points = {name: paired(value) for name, value in ratios.items() if value is not None}
    return SubjectNight(**(known | {"exact": exact} | points | fields))


def night(number: int, *found: SubjectNight, days: float | None = None, **fields: Any) -> Night:
    """number: of the night, one a day. days: after the first night, where that is something else."""
    at = FIRST + timedelta(days=number if days is None else days)
    known: dict[str, Any] = {
        "recorded_at": at.isoformat(),
        "revision": f"r{number}",
        "pipebench": "0.1.0",
        "budget_s": 60.0,
        "spent_s": 10.0,
        "weather": Weather(load=(0.1, 0.2)),
        "measured": found or (measured(),),
    }
    return Night(**(known | fields))


def stored(cpu: str, found: Night) -> StoredNight:
    """A night on a machine with such a CPU."""
    return StoredNight.of(MachineClass(system="Linux", machine="x86_64", cpu=cpu, cpus="4"), found, "")


def add_nights(folder: Path, machine: MachineClass, nights: Iterable[Night], plans: Iterable[Plan] = ()) -> None:
    """As one `track record` after the other; the plans stand with the first night."""
    journal, found = NightJournal.open(folder), tuple(plans)
    for each in nights:
        journal.append(machine, each, found)
        found = ()
