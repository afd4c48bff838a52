"""Run one side once: `pipebench compare --json` in a process of its own, its rows read leniently."""

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.track.against.side import Side

LONGEST_S = 3600.0
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


def run_side(side: Side, arguments: Sequence[str], folder: Path) -> Run:
    """One run of the command on one side, from the user's folder. Raises PipebenchError when it gives no rows."""
    words = [sys.executable, "-P", "-m", "pipebench", "compare", "--json", *arguments]
    began = time.monotonic()
    try:
        done = subprocess.run(
            words, capture_output=True, env=side.environment(), cwd=folder, timeout=LONGEST_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipebenchError(f"{side.name}: {error}") from None
    wall_s = time.monotonic() - began
    if done.returncode not in TIMED:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise PipebenchError(f"{side.name}: pipebench compare ended with exit code {done.returncode}: {lines[-1]}")
    try:
        return Run(msgspec.json.decode(done.stdout, type=_Rows).rows, wall_s)
    except msgspec.MsgspecError as error:
        raise PipebenchError(f"{side.name}: pipebench compare gave no rows: {error}") from None
