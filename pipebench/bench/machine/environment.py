"""The machine on which a row is made: what it is, what else runs on it, and whether search times
may be compared.
"""

import os
import platform
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pipebench.domain.row import Row

PACKAGES = ("pipebench", "numpy", "numba", "networkx", "PuLP", "highspy")


@cache
def environment() -> dict[str, str]:
    """Machine, CPU, Python, package versions and git revision; the load is added by `with_load`."""
    found = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": str(os.cpu_count()),
        "git": _git_revision(),
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def with_load(seed: int) -> dict[str, str]:
    """The environment with the load average and the seed of this moment."""
    return {**environment(), "load": f"{os.getloadavg()[0]:.2f}", "seed": str(seed)}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _git_revision() -> str:
    """The revision of the checkout that this code runs from; '' when it was installed from elsewhere."""
    root = Path(__file__).resolve().parents[2]
    return _git(root, "describe", "--always", "--dirty") if (root / ".git").exists() else ""


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


STAT = Path("/proc/stat")
BUSY_COLUMNS = (0, 1, 2, 5, 6, 7)
"""Of a line of STAT: user, nice, system, irq, softirq, and what the hypervisor gave to others."""
DISTURBING = 0.25
"""Cores that others use; from here on a run is said to be disturbed."""
LEAST_JUDGED_S = 0.2
"""Shorter runs are not judged: the system counts in ticks of some milliseconds."""


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds since the machine started: of all, and of this process with all that it started."""

    at_s: float
    all_s: float
    own_s: float


def usage() -> Usage | None:
    """What was used up to now; None where the system does not tell."""
    with suppress(OSError, ValueError, IndexError):
        ticks = [int(number) for number in STAT.read_text().splitlines()[0].split()[1:]]
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        return Usage(
            at_s=time.monotonic(),
            all_s=sum(ticks[column] for column in BUSY_COLUMNS) * tick_s,
            own_s=_own_ticks() * tick_s,
        )
    return None


def _own_ticks() -> int:
    """Of this process, of those that it started, and of theirs; ended ones count once somebody waited for them."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for folder in STAT.parent.glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents[int(folder.name)] = int(fields[1])
            ticks[int(folder.name)] = sum(map(int, fields[11:15]))
    children: dict[int, list[int]] = {}
    for process, parent in parents.items():
        children.setdefault(parent, []).append(process)
    found, todo = 0, [os.getpid()]
    while todo:
        process = todo.pop()
        found += ticks.get(process, 0)
        todo += children.get(process, [])
    return found


def disturbance(before: Usage | None, after: Usage | None) -> list[str]:
    """A line for a run between two moments in which others used the machine too: such a run shows no error."""
    if before is None or after is None or after.at_s - before.at_s < LEAST_JUDGED_S:
        return []
    others = (after.all_s - before.all_s - after.own_s + before.own_s) / (after.at_s - before.at_s)
    if others < DISTURBING:
        return []
    cores = os.cpu_count() or 1
    return [
        f"others used {others:.1f} of {cores} cores during the run: on an idle machine it may have been faster, "
        "so no error is given"
    ]


MACHINE_CLASS = ("machine", "system", "cpu", "cpus", "python", *(name for name in PACKAGES if name != "pipebench"))
"""What must be equal in row.environment; the planner's own version is not the machine's business."""


def search_refusal(rows: Iterable[Row]) -> str:
    """Why search times must not be compared, in one line; '' when they may."""
    found = list(rows)
    parallel = sum(row.parallel for row in found)
    if parallel:
        return f"{parallel} of {len(found)} rows ran in parallel with others"
    return machine_difference(found)


def machine_difference(rows: Iterable[Row]) -> str:
    """In what the machines of these rows differ, in one line; '' when they are of one class."""
    found = {id(row.environment): row for row in rows}.values()  # most rows of a store share theirs
    for name in MACHINE_CLASS:
        values = _values(found, name)
        if len(values) > 1:
            return f"rows come from different machines: {name} is {' and '.join(values)}"
    return ""


def suite_notice(rows: Iterable[Row]) -> str:
    """A line when rows were scored by different versions of the suite, whose models may differ; else ''."""
    values = _values({id(row.environment): row for row in rows}.values(), "pipebench")
    return (
        f"rows were scored by pipebench {' and '.join(values)}, whose models may differ" if len(values) > 1 else ""
    )


def _values(rows: Iterable[Row], name: str) -> list[str]:
    found = {row.environment.get(name, "not recorded") for row in rows}
    return [repr(value) if " " in value else value for value in sorted(found)]
