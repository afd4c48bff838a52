"""Processes of a run without the seconds in which each of them imports torch: they are forked from one that has.

For tests about what processes compute. How they are started, and what becomes of those that fail, is tested with
torchrun's agent and new interpreters in test_commands, test_launch, test_failures, test_nodes and by the kit.
"""

import contextlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pipebench_torch.processes.job import OUTPUT, NodeEnding
from pipebench_torch.processes.launch import DEFAULTS, failure_at_limit, failure_of_rank
from pipebench_torch.processes.nodes import RunNode

MODULES = ("pipebench_torch.running.session", "pipebench_torch.profiling.link_worker")
POLL_S = 0.005


class WarmProcess:
    """A process that has imported what workers import, and forks them. It computes nothing itself."""

    def __init__(self) -> None:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.plugins.torch.warm"],
            env={**os.environ, **DEFAULTS, "PYTHONPATH": path, "GLOO_SOCKET_IFNAME": "lo"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run_ranks(
        self,
        command: Sequence[str],
        world: int,
        folder: Path,
        deadline_s: float,
        node: RunNode | None = None,
        facts: Mapping[str, str] | None = None,
    ) -> None:
        """As `pipebench_torch.processes.launch.run_ranks` on one node: the same errors, and no process is left."""
        del facts
        assert command[0] == sys.executable
        answer = self.ask(command=list(command[1:]), world=world, folder=str(folder), deadline_s=deadline_s)
        codes = tuple((rank, code) for rank, code in enumerate(answer["codes"]) if code)
        if answer["late"]:
            raise failure_at_limit(folder, world)
        if codes:
            raise failure_of_rank(folder, world, node or RunNode(processes=(world,)), [NodeEnding(codes=codes)])

    def ask(self, **request: Any) -> Any:
        """Send a request, and wait for the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate()


def serve() -> None:
    """Answer requests, a line each, until there are no more: `modules` to import, or a `command` to run."""
    for module in MODULES:
        import_module(module)
    for line in sys.stdin:
        request = json.loads(line)
        for module in request.pop("modules", ()):
            import_module(module)
        print(json.dumps(_run(**request) if request else {}), flush=True)


def _run(command: list[str], world: int, folder: str, deadline_s: float) -> dict[str, Any]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world)}
    ranks: dict[int, int] = {}
    for rank in range(world):
        process = os.fork()
        if process == 0:
            os.environ |= {**meeting, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            _become(command, Path(folder) / OUTPUT.format(rank))
        ranks[process] = rank
    return _watch(ranks, deadline_s)


def _become(command: list[str], output: Path) -> None:
    """Run a command of Python in this process, which ends with its exit code."""
    code: Any = 1
    try:
        os.setsid()
        printed = os.open(output, os.O_WRONLY | os.O_CREAT)
        for stream in (1, 2):
            os.dup2(printed, stream)
        if command[0] == "-P":  # the current folder is not on this process' import path either
            command = command[1:]
        if command[0] == "-m":
            sys.argv = command[1:]
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = command
            runpy.run_path(command[0], run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


def _watch(ranks: dict[int, int], deadline_s: float) -> dict[str, Any]:
    """Until all have ended: of themselves, because one of them failed or because their time is over."""
    codes = [0] * len(ranks)
    left, parent, failed, late = dict(ranks), os.getppid(), False, False
    while left:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:
            rank, code = left.pop(ended), os.waitstatus_to_exitcode(status)
            codes[rank] = 0 if failed else code
        late = late or time.monotonic() > deadline_s
        if late or any(codes) or os.getppid() != parent:
            failed = True
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGKILL)
        if not ended:
            time.sleep(POLL_S)
    return {"codes": codes, "late": late and not any(codes)}


if __name__ == "__main__":
    serve()
