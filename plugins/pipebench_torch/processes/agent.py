"""The processes of one node, started by torchrun's agent (processes.launch starts this).

They end when one of them fails, when another node says so, when the time is over or when the one who started this
is gone. Afterwards every node has what the processes of all nodes left.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from torch.distributed.elastic.agent.server.api import WorkerSpec
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from pipebench.system.parent import outlive_parent
from pipebench_torch.processes.job import ENDED, ERROR, GRACE_S, OUTPUT, PIDS, START, NodeEnding, Start, write
from pipebench_torch.processes.meeting import SHARE_S, Meeting, NodeFailed, first_line

POLL_S = 0.05
NAME = "pipebench"


def main(folder: Path) -> int:
    """Meet the other nodes, run the processes, share what they left; 0 when all ended well."""
    start = msgspec.msgpack.decode((folder / START).read_bytes(), type=Start)
    meeting = None
    try:
        meeting = Meeting(start.node, start.deadline_s)
        meeting.agree(start.facts, start.deadline_s)
        interface = meeting.interface()
        if interface:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
        ended = _run(folder, start, meeting)
    except NodeFailed as error:
        write(folder / ERROR.format(f"node-{start.node.rank}"), error.failure)
        ended = NodeEnding()
    well = ended.well
    if not well:
        write(folder / ENDED.format(start.node.rank), ended)
    if meeting is not None and start.node.count > 1:
        if not well:
            meeting.fail()
        meeting.share(folder)
    return 0 if well else 1


def _run(folder: Path, start: Start, meeting: Meeting) -> NodeEnding:
    left_s = max(1.0, start.deadline_s - time.monotonic())
    agent = _agent(folder, start, meeting.port, left_s)
    watch = _Watch(folder, start, meeting, agent)
    watch.start()
    outlive_parent()
    result, trouble = None, ""
    try:
        result = agent.run()
    except RuntimeError as error:  # of the store, which is gone with node 0
        trouble = first_line(error)
    finally:
        watch.stop()
    if not meeting.answers():
        raise NodeFailed("other", "node 0 is gone: it ended without a word")
    if watch.reason:
        return NodeEnding(late=watch.reason == "late")
    if result is None:
        raise NodeFailed("other", f"torchrun's agent of node {start.node.rank} failed: {trouble}")
    if not result.is_failed():
        return NodeEnding(well=True)
    for rank in result.failures:
        (folder / OUTPUT.format(rank)).write_bytes(_output_end(folder, rank - start.node.ranks[0]))
    return NodeEnding(codes=_first_codes(result.failures))


def _agent(folder: Path, start: Start, port: int, left_s: float) -> LocalElasticAgent:
    """torchrun's own agent with the static rendezvous.

    Node ranks are given, and nothing is started a second time.
    """
    node = start.node
    meeting_point = RendezvousParameters(
        backend="static",
        endpoint=replace(node, port=port).where,
        run_id=NAME,
        min_nodes=node.count,
        max_nodes=node.count,
        rank=node.rank,
        timeout=int(left_s) + 1,
    )
    spec = WorkerSpec(
        role=NAME,
        local_world_size=node.processes[node.rank],
        rdzv_handler=get_rendezvous_handler(meeting_point),
        entrypoint=start.command[0],
        args=start.command[1:],
        max_restarts=0,
        monitor_interval=POLL_S,
        master_addr=node.host,
        master_port=port,
    )
    logs = DefaultLogsSpecs(log_dir=str(folder / "logs"), redirects=Std.ALL)
    return LocalElasticAgent(spec, logs, exit_barrier_timeout=SHARE_S)


class _Watch(threading.Thread):
    """Kills the processes when the run has to end and torchrun's agent does not see why.

    reason: `late` when the time is over, `other` when another node failed, else empty.
    """

    def __init__(self, folder: Path, start: Start, meeting: Meeting, agent: LocalElasticAgent) -> None:
        super().__init__(daemon=True)
        self.folder, self.begin, self.meeting, self.agent = folder, start, meeting, agent
        self.reason = ""
        self._over = threading.Event()
        self._known: list[int] = []

    def stop(self) -> None:
        """The processes have ended."""
        self._over.set()
        self.join()

    def run(self) -> None:
        """Watch until the processes have ended."""
        others = self.begin.node.count > 1
        until = self.begin.deadline_s
        told = False
        while not self._over.wait(POLL_S):
            self._note()
            if os.getppid() != self.begin.parent:
                self._kill()
                os._exit(1)
            if others and not told and self.meeting.has_failed():
                told = True
                until = min(until, time.monotonic() + GRACE_S)  # time for its own processes to say why they stop
            if time.monotonic() >= until:
                self.reason = "other" if told else "late"
                break
        while self.reason and not self._over.wait(POLL_S):
            self._note()
            self._kill()

    def _note(self) -> None:
        """Tell the one who started this which processes there are."""
        pids = [int(worker.id) for worker in self.agent.get_worker_group().workers if worker.id]
        if pids != self._known:
            self._known = pids
            draft = self.folder / f"{PIDS}.draft"
            draft.write_text(" ".join(map(str, pids)))
            draft.rename(self.folder / PIDS)

    def _kill(self) -> None:
        for pid in self._known:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)


def _first_codes(failures: Mapping[int, Any]) -> tuple[tuple[int, int], ...]:
    """Exit codes by rank, without processes that were ended because others had failed."""
    codes = [(rank, failure.exitcode) for rank, failure in failures.items()]
    own = [(rank, code) for rank, code in codes if code != -signal.SIGTERM]
    return tuple(own or codes[:1])


def _output_end(folder: Path, local: int) -> bytes:
    """The end of what a process printed, errors last."""
    found = b""
    for name in ("stdout.log", "stderr.log"):
        for path in folder.glob(f"logs/*/attempt_0/{local}/{name}"):
            found += path.read_bytes()[-4000:]
    return found
