"""The conditions of a night: the class of the machine, its load, and what a result depends on
beside the tracked code.
"""

import hashlib
import inspect
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipebench.bench.machine.environment import PACKAGES, environment
from pipebench.bench.searches import calibration
from pipebench.domain.row import Row
from pipebench.domain.value import Value, digest
from pipebench.track.nights.night import Weather

if TYPE_CHECKING:
    from pipebench.bench.trials.trial import Trial

FACTS = ("system", "machine", "cpu", "cpus")
"""Of a row's environment. Python and packages are not among them: they start a new segment of a history."""
SLUG_LETTERS = 40


class MachineClass(Value, frozen=True, kw_only=True):
    """What makes machines alike: operating system, architecture, CPU model, number of CPUs."""

    system: str
    machine: str
    cpu: str
    cpus: str

    @property
    def name(self) -> str:
        """Readable, and its own."""
        words = f"{self.system} {self.machine} {self.cpu} {self.cpus}cpu".lower()
        slug = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:SLUG_LETTERS].strip("-")
        return f"{slug}-{digest(self)[:8]}"

    @property
    def words(self) -> str:
        """As people say it."""
        return f"{self.cpus} x {self.cpu or 'unknown CPU'}, {self.machine}, {self.system}"


def this_machine() -> MachineClass:
    """The class of the machine that this runs on."""
    found = environment()
    return MachineClass(**{name: found.get(name, "") for name in FACTS})


PROBLEM = "problem"


def fingerprint(trial: "Trial", row: Row) -> dict[str, str]:
    """Problem, declared versions of planner, pipebench, Python and packages, architecture, seed, limits.

    The source of the planner is not part of it: that it changed is what tracking is about.
    """
    environment = row.environment
    found = {
        PROBLEM: row.problem_id,
        "planner": f"{row.distribution} {row.version}".strip(),
        "executors": ",".join(trial.executors),
        "python": minor_version(environment.get("python", "")),
        "system": f"{environment.get('system', '')} {environment.get('machine', '')}",
        "seed": str(trial.seed),
        "timeout_s": f"{trial.timeout_s:g}",
    }
    return found | {name: environment.get(name, "") for name in PACKAGES}


def minor_version(python: str) -> str:
    """`3.11` of `3.11.7`: a bug fix of Python begins no segment."""
    return ".".join(python.split(".")[:2])


@cache
def calibration_code() -> str:
    """Hash of the calibrations' code: the unit of paired ratios."""
    return hashlib.sha256(inspect.getsource(calibration).encode()).hexdigest()[:16]


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """What differs, one line each; problems are hashes, which say nothing to people."""
    return [
        "another problem" if name == PROBLEM else f"{name} {before.get(name) or '-'} -> {after.get(name) or '-'}"
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


PRESSURE, STAT, QUOTA = Path("/proc/pressure/cpu"), Path("/proc/stat"), Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class LoadCounters:
    """Counters at one moment, None where the system has none."""

    at_s: float
    load: float
    waited_us: int | None
    stolen: tuple[int, int] | None


def load_counters() -> LoadCounters:
    """The counters of this moment."""
    return LoadCounters(time.monotonic(), os.getloadavg()[0], _waited_us(), _stolen_ticks())


def machine_load(before: LoadCounters, after: LoadCounters) -> Weather:
    """What happened between two moments."""
    passed_s = max(after.at_s - before.at_s, 1e-9)
    pressure = steal = None
    if before.waited_us is not None and after.waited_us is not None:
        pressure = round((after.waited_us - before.waited_us) / 1e6 / passed_s, 4)
    if before.stolen is not None and after.stolen is not None:
        whole = after.stolen[1] - before.stolen[1]
        steal = round((after.stolen[0] - before.stolen[0]) / whole, 4) if whole > 0 else 0.0
    return Weather(
        load=(round(before.load, 2), round(after.load, 2)),
        pressure_share=pressure,
        steal_share=steal,
        quota_cpus=_quota(),
    )


def _waited_us() -> int | None:
    """Microseconds in which some process waited for a CPU."""
    with suppress(OSError, ValueError, StopIteration):
        line = next(line for line in PRESSURE.read_text().splitlines() if line.startswith("some "))
        return int(line.rpartition("total=")[2])
    return None


def _stolen_ticks() -> tuple[int, int] | None:
    """Ticks stolen by other guests, and ticks in all."""
    with suppress(OSError, ValueError, IndexError):
        ticks = [int(number) for number in STAT.read_text().splitlines()[0].split()[1:9]]
        return ticks[7], sum(ticks)
    return None


def _quota() -> float | None:
    with suppress(OSError, ValueError):
        quota, period = QUOTA.read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    return None
