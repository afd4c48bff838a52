"""How busy the machine is while it measures: load, pressure, steal, quota."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipebench.track.night import Weather

PRESSURE, STAT, QUOTA = Path("/proc/pressure/cpu"), Path("/proc/stat"), Path("/sys/fs/cgroup/cpu.max")


@dataclass(frozen=True, slots=True)
class Sky:
    """Counters at one moment, None where the system has none."""

    at_s: float
    load: float
    waited_us: int | None
    stolen: tuple[int, int] | None


def look() -> Sky:
    """The counters of this moment."""
    return Sky(time.monotonic(), os.getloadavg()[0], _waited_us(), _stolen())


def weather(before: Sky, after: Sky) -> Weather:
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


def _stolen() -> tuple[int, int] | None:
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
