"""Start the processes of this machine through torchrun's agent: all end, in time, whatever one of them does."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipebench_torch.processes.failures import failed, late, silent
from pipebench_torch.processes.job import ENDED, PIDS, START, Start, read_ended, write
from pipebench_torch.processes.nodes import Node

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
    node: Node | None = None,
    facts: Mapping[str, str] | None = None,
) -> None:
    """Run the processes of this node to their end. deadline_s: of time.monotonic(). folder: what the processes of
    all nodes leave is there afterwards. facts: must be the same on all nodes.

    Raises PortTaken, and RanksFailed that names the process and why; no process is left in any case.
    """
    node = node or Node(processes=(world,))
    start = Start(
        node=node, command=tuple(command), deadline_s=deadline_s, parent=os.getpid(), facts=dict(facts or {})
    )
    write(folder / START, start)
    log = folder / "agent"
    with log.open("wb") as file:
        agent = subprocess.Popen(
            [sys.executable, "-m", "pipebench_torch.processes.agent", str(folder)],
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
        raise failed(folder, world, node, [each for each in ended if each is not None])
    if overdue or any(each is not None and each.late for each in ended):
        raise late(folder, world)
    if agent.returncode:
        raise silent(agent.returncode, log)


def _stop(agent: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Kill what is left, children of the processes included, and wait for it."""
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
