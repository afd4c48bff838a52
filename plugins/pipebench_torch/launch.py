"""Start one process a device on this machine and watch them: all end, in time, whatever one of them does.

The environment is that of torchrun, so that the same program runs under torchrun on several machines.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench_torch.job import STATUS, Failure, read_failure
from pipebench_torch.status import read_status

GRACE_S = 3.0
"""How long the others may go on after one process failed: time to say why they stop."""
POLL_S = 0.02


class PortTaken(PipebenchError):
    """The rendezvous port is in use."""


class RanksFailed(PipebenchError):
    """A process of the run failed, or did not end in time."""


@dataclass
class Ranks:
    """The processes of one run."""

    folder: Path
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    outputs: list[Path] = field(default_factory=list)

    def start(self, command: Sequence[str], world: int, port: int) -> None:
        """Start all of them, each the leader of a process group of its own."""
        for rank in range(world):
            output = self.folder / f"output-{rank}"
            environment = {**os.environ, **rank_environment(rank, world, port)}
            with output.open("wb") as file:
                self.outputs.append(output)
                self.processes.append(
                    subprocess.Popen(
                        list(command),
                        env=environment,
                        stdin=subprocess.DEVNULL,
                        stdout=file,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )

    def stop(self) -> None:
        """Kill what is left, children included, and wait for it."""
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        for process in self.processes:
            process.wait()

    def tail(self, rank: int) -> str:
        """The last line that a process printed."""
        text = self.outputs[rank].read_bytes()[-4000:].decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return lines[-1][:200] if lines else ""


def rank_environment(rank: int, world: int, port: int) -> dict[str, str]:
    """What torchrun would set, and one thread a process."""
    found = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
    if sys.platform == "linux":
        found["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", "lo")
    return found


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def run_ranks(command: Sequence[str], world: int, folder: Path, deadline_s: float, port: int = 0) -> None:
    """Run the processes to their end. deadline_s: of time.monotonic().

    Raises PortTaken, and RanksFailed that names the process and why; no process is left in any case.
    """
    ranks = Ranks(folder)
    try:
        ranks.start(command, world, port or free_port())
        _watch(ranks, deadline_s)
    finally:
        ranks.stop()


def _watch(ranks: Ranks, deadline_s: float) -> None:
    while True:
        codes = [process.poll() for process in ranks.processes]
        if all(code == 0 for code in codes):
            return
        if any(code not in (None, 0) for code in codes):
            _let_them_say(ranks, deadline_s)
            raise _failed(ranks, codes)
        if time.monotonic() >= deadline_s:
            raise _late(ranks)
        time.sleep(POLL_S)


def _let_them_say(ranks: Ranks, deadline_s: float) -> None:
    until = min(deadline_s, time.monotonic() + GRACE_S)
    while time.monotonic() < until and any(process.poll() is None for process in ranks.processes):
        time.sleep(POLL_S)


def _failed(ranks: Ranks, first: list[int | None]) -> PipebenchError:
    """The process that failed of itself, not one that only lost another."""
    failures = [read_failure(ranks.folder, rank) for rank in range(len(ranks.processes))]
    for rank, code in enumerate(first):
        if code not in (None, 0) and failures[rank] is None:
            return RanksFailed(
                f"rank {rank} {_ending(int(code or 0))} while {_doing(ranks, rank)}{_said(ranks, rank)}"
            )
    for kind in ("port", "memory", "unsupported", "other", "peer"):
        for rank, failure in enumerate(failures):
            if failure is not None and failure.kind == kind:
                return _of_failure(rank, failure)
    rank = next(rank for rank, code in enumerate(first) if code not in (None, 0))
    return RanksFailed(f"rank {rank} {_ending(int(first[rank] or 0))}")


def _of_failure(rank: int, failure: Failure) -> PipebenchError:
    if failure.kind == "port":
        return PortTaken(f"rank {rank}: {failure.message}", "leave `port` out: a free one is taken")
    doing = f" while {failure.doing}" if failure.doing else ""
    if failure.kind == "memory":
        return RanksFailed(
            f"rank {rank} ran out of memory{doing}: {failure.message}", "fewer samples in flight need less"
        )
    return RanksFailed(f"rank {rank} failed{doing}: {failure.message}")


def _late(ranks: Ranks) -> PipebenchError:
    """The process that hangs is one that is not waiting for another."""
    doing = [_doing(ranks, rank) for rank in range(len(ranks.processes))]
    running = [rank for rank, process in enumerate(ranks.processes) if process.poll() is None]
    busy = [rank for rank in running if not doing[rank].startswith("waiting")] or running
    said = "; ".join(f"rank {rank} was {doing[rank]}" for rank in busy)
    return RanksFailed(f"the time limit was reached: {said}")


def _doing(ranks: Ranks, rank: int) -> str:
    return read_status(ranks.folder / STATUS.format(rank)) or "starting"


def _said(ranks: Ranks, rank: int) -> str:
    line = ranks.tail(rank)
    return f" ({line})" if line else ""


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
