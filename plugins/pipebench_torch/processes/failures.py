"""Which process failed, and why: from what the processes of all nodes left."""

import signal
from collections.abc import Sequence
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench_torch.processes.job import OUTPUT, REPORT, STATUS, Ended, Failure, read_failure
from pipebench_torch.processes.nodes import Node
from pipebench_torch.processes.status import read_status


class PortTaken(PipebenchError):
    """The rendezvous port is in use."""


class RanksFailed(PipebenchError):
    """A process of the run failed, or did not end in time."""


def failed(folder: Path, world: int, node: Node, ended: Sequence[Ended]) -> PipebenchError:
    """The process that failed of itself, not one that only lost another."""
    for each in range(node.count):
        failure = read_failure(folder, f"node-{each}")
        if failure is not None:
            return _of_node(failure)
    codes = dict(code for each in ended for code in each.codes)
    failures = [read_failure(folder, rank) for rank in range(world)]
    for rank, code in codes.items():
        if failures[rank] is None:
            return RanksFailed(f"rank {rank} {_ending(code)} while {_doing(folder, rank)}{_said(folder, rank)}")
    for kind in ("port", "memory", "unsupported", "other", "peer"):
        for rank, failure in enumerate(failures):
            if failure is not None and failure.kind == kind:
                return _of_rank(rank, failure)
    return RanksFailed("a process failed and did not say why")


def late(folder: Path, world: int) -> PipebenchError:
    """The process that hangs is one that is not waiting for another."""
    doing = [_doing(folder, rank) for rank in range(world)]
    running = [rank for rank in range(world) if not (folder / REPORT.format(rank)).exists()] or list(range(world))
    busy = [rank for rank in running if not doing[rank].startswith("waiting")] or running
    said = "; ".join(f"rank {rank} was {doing[rank]}" for rank in busy)
    return RanksFailed(f"the time limit was reached: {said}", "timeout_s=… of the torch plugin gives it longer")


def silent(code: int, log: Path) -> PipebenchError:
    """torchrun's agent itself failed."""
    line = _last_line(log)
    return RanksFailed(f"torchrun's agent {_ending(code)}" + (f" ({line})" if line else ""))


def _of_node(failure: Failure) -> PipebenchError:
    if failure.kind == "port":
        return PortTaken(failure.message, "name another one in rendezvous, or leave it out: a free one is taken")
    return RanksFailed(failure.message)


def _of_rank(rank: int, failure: Failure) -> PipebenchError:
    doing = f" while {failure.doing}" if failure.doing else ""
    if failure.kind == "port":
        return PortTaken(f"rank {rank}: {failure.message}", "name another rendezvous")
    if failure.kind == "memory":
        return RanksFailed(
            f"rank {rank} ran out of memory{doing}: {failure.message}", "fewer samples in flight need less"
        )
    return RanksFailed(f"rank {rank} failed{doing}: {failure.message}", _way_out(failure))


def _way_out(failure: Failure) -> str:
    if "connectFullMesh" in failure.message:
        return "name the interface between the nodes in GLOO_SOCKET_IFNAME, and let them reach each other's ports"
    return ""


def _doing(folder: Path, rank: int) -> str:
    return read_status(folder / STATUS.format(rank)) or "starting"


def _said(folder: Path, rank: int) -> str:
    line = _last_line(folder / OUTPUT.format(rank))
    return f" ({line})" if line else ""


def _last_line(path: Path) -> str:
    """The last line that a process printed."""
    try:
        text = path.read_bytes()[-4000:].decode(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
