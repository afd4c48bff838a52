"""Start the processes of this machine through torchrun's agent, end all in time, and say which failed and why."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench_torch.processes.job import (
    ENDED,
    OUTPUT,
    PIDS,
    REPORT,
    START,
    STATUS,
    Failure,
    NodeEnding,
    Start,
    read_ended,
    read_failure,
    read_status,
    write,
)
from pipebench_torch.processes.nodes import RunNode


class PortTaken(PipebenchError):
    """The rendezvous port is in use."""


class RanksFailed(PipebenchError):
    """A process of the run failed, or did not end in time."""


def failure_of_rank(folder: Path, world: int, node: RunNode, ended: Sequence[NodeEnding]) -> PipebenchError:
    """The failure of the process that failed of itself, and not of one that only lost another."""
    for each in range(node.count):
        failure = read_failure(folder, f"node-{each}")
        if failure is not None:
            return _of_node(failure)
    codes = dict(code for each in ended for code in each.codes)
    failures = [read_failure(folder, rank) for rank in range(world)]
    for rank, code in codes.items():
        if failures[rank] is None:
            return RanksFailed(
                f"rank {rank} {_ending(code)} while {_doing(folder, rank)}{_last_words(folder, rank)}"
            )
    for kind in ("port", "memory", "unsupported", "other", "peer"):
        for rank, failure in enumerate(failures):
            if failure is not None and failure.kind == kind:
                return _of_rank(rank, failure)
    return RanksFailed("a process failed and did not say why")


def failure_at_limit(folder: Path, world: int) -> PipebenchError:
    """The failure at the time limit: the process that hangs is one that does not wait for another."""
    doing = [_doing(folder, rank) for rank in range(world)]
    running = [rank for rank in range(world) if not (folder / REPORT.format(rank)).exists()] or list(range(world))
    busy = [rank for rank in running if not doing[rank].startswith("waiting")] or running
    said = "; ".join(f"rank {rank} was {doing[rank]}" for rank in busy)
    return RanksFailed(f"the time limit was reached: {said}", "timeout_s=… of the torch plugin gives it longer")


def failure_of_agent(code: int, log: Path) -> PipebenchError:
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


def _last_words(folder: Path, rank: int) -> str:
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


AGENT = (
    "import os, sys; from pathlib import Path; from pipebench.system.parent import end_with_parent;"
    "end_with_parent(os.getppid());"  # until it has imported torch, and sees to that itself
    "from pipebench_torch.processes.agent import main; sys.exit(main(Path(sys.argv[1])))"
)
POLL_S = 0.02
CLOSE_S = 8.0
"""How long after the deadline the agent may take to hear why the others stopped."""
TERMINATE_S = 2.0
DEFAULTS = {"OMP_NUM_THREADS": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "32"}
"""One thread a process; a receive that waits on a card must not hold up what was queued after it."""


def run_ranks(
    command: Sequence[str],
    world: int,
    folder: Path,
    deadline_s: float,
    node: RunNode | None = None,
    facts: Mapping[str, str] | None = None,
) -> None:
    """Run the processes of this node to their end.

    deadline_s: of time.monotonic().
    folder: holds afterwards what the processes of all nodes left.
    facts: what must be the same on all nodes.

    Raises PortTaken, and RanksFailed with the process and its reason. No process is left in any case.
    """
    node = node or RunNode(processes=(world,))
    start = Start(
        node=node, command=tuple(command), deadline_s=deadline_s, parent=os.getpid(), facts=dict(facts or {})
    )
    write(folder / START, start)
    log = folder / "agent"
    with log.open("wb") as file:
        agent = subprocess.Popen(
            [sys.executable, "-P", "-c", AGENT, str(folder)],
            env={**DEFAULTS, **os.environ},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        while agent.poll() is None and time.monotonic() < deadline_s + CLOSE_S:
            time.sleep(POLL_S)
        overdue = agent.poll() is None
    finally:
        _stop(agent, folder)
    ended = [read_ended(folder / ENDED.format(each)) for each in range(node.count)]
    if any(each is not None and each.codes for each in ended) or list(folder.glob("error-*")):
        raise failure_of_rank(folder, world, node, [each for each in ended if each is not None])
    if overdue or any(each is not None and each.late for each in ended):
        raise failure_at_limit(folder, world)
    if agent.returncode:
        raise failure_of_agent(agent.returncode, log)


def _stop(agent: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Kill the processes that are left, with their children, and wait for them."""
    if agent.poll() is None:
        agent.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            agent.wait(TERMINATE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(agent.pid, signal.SIGKILL)
    agent.wait()
    with contextlib.suppress(OSError):
        for pid in (folder / PIDS).read_text().split():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(int(pid), signal.SIGKILL)
