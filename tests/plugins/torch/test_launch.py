"""Processes that die, hang or say why they fail: the run ends in time, names the rank, leaves no process."""

import functools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.domain.errors import PipebenchError
from pipebench_torch.processes.launch import RanksFailed, run_ranks

PRELUDE = """
import os, sys, time, signal
from pathlib import Path
folder = Path(sys.argv[1])
rank = int(os.environ["RANK"])
new = folder / f"new-{rank}"
new.write_text(str(os.getpid()))
new.rename(folder / f"pid-{rank}")
def say(text):
    (folder / f"status-{rank}").write_text(text)
def give_up(kind, message):
    from pipebench_torch.processes import job
    job.give_up(folder, rank, job.Failure(kind=kind, message=message, doing="running F of stage 0, micro-batch 2"))
    sys.exit(1)
"""


def alive(process: int) -> bool:
    """Whether it still runs a moment after it was killed."""
    until = time.monotonic() + 3
    while running(process) and time.monotonic() < until:
        time.sleep(0.05)
    return running(process)


def running(process: int) -> bool:
    """One that nobody has waited for yet does not run."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@functools.cache
def start_limit_s() -> float:
    """A time limit by which processes run, however slow this machine is: by how long they take to start."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run_ranks([sys.executable, "-c", PRELUDE, folder], 2, Path(folder), began + 300)
    return 3 + 3 * (time.monotonic() - began)


def outcome(folder: Path, body: str, limit_s: float = 120.0) -> str:
    """What two processes with this program end with; none is left afterwards."""
    command = [sys.executable, "-c", PRELUDE + body, str(folder)]
    with pytest.raises(RanksFailed) as caught:
        run_ranks(command, 2, folder, time.monotonic() + limit_s)
    for file in folder.glob("pid-*"):
        assert not alive(int(file.read_text()))
    return caught.value.message


def test_all_end_well(tmp_path: Path) -> None:
    run_ranks([sys.executable, "-c", PRELUDE, str(tmp_path)], 2, tmp_path, time.monotonic() + 120)
    assert sorted(file.name for file in tmp_path.glob("pid-*")) == ["pid-0", "pid-1"]


def test_a_rank_that_dies_is_named(tmp_path: Path) -> None:
    body = """
say("running B of stage 1, micro-batch 3" if rank else "waiting for rank 1: B of stage 0, micro-batch 3")
time.sleep(0.2)
if rank: os.kill(os.getpid(), signal.SIGKILL)
time.sleep(600)
"""
    message = outcome(tmp_path, body)
    assert message == "rank 1 was killed by SIGKILL (out of memory?) while running B of stage 1, micro-batch 3"


def test_the_exit_code_and_the_last_words(tmp_path: Path) -> None:
    message = outcome(tmp_path, 'say("starting")\nif rank: sys.exit("no such library")\ntime.sleep(600)')
    assert message == "rank 1 ended with exit code 1 while starting (no such library)"


def test_processes_that_cannot_reach_each_other_hear_what_to_do(tmp_path: Path) -> None:
    body = """
give_up("other", "RuntimeError: Gloo connectFullMesh failed with [pair.cc:152] timed out connecting")
"""
    command = [sys.executable, "-c", PRELUDE + body, str(tmp_path)]
    with pytest.raises(RanksFailed) as caught:
        run_ranks(command, 2, tmp_path, time.monotonic() + 120)
    assert caught.value.hint is not None
    assert "GLOO_SOCKET_IFNAME" in caught.value.hint


def test_a_rank_that_hangs_is_named_not_the_one_that_waits_for_it(tmp_path: Path) -> None:
    body = """
say("running F of stage 1, micro-batch 0" if rank else "waiting for rank 1: B of stage 0, micro-batch 0")
if rank: signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(600)
"""
    limit_s = start_limit_s()
    began = time.monotonic()
    message = outcome(tmp_path, body, limit_s=limit_s)
    assert message == "the time limit was reached: rank 1 was running F of stage 1, micro-batch 0"
    assert time.monotonic() - began < limit_s + 60


def test_the_cause_is_told_not_the_lost_connection(tmp_path: Path) -> None:
    body = """
time.sleep(0.5 * rank)
if rank: give_up("memory", "can't allocate memory: you tried to allocate 96 bytes")
give_up("peer", "Connection closed by peer")
"""
    message = outcome(tmp_path, body)
    assert message.startswith("rank 1 ran out of memory while running F of stage 0, micro-batch 2: can't allocate")


def test_children_of_a_rank_are_gone_too(tmp_path: Path) -> None:
    body = """
import subprocess
if rank == 0:
    child = subprocess.Popen(["sleep", "600"])
    (folder / "pid-child").write_text(str(child.pid))
    sys.exit(2)
time.sleep(600)
"""
    assert outcome(tmp_path, body).startswith("rank 0 ended with exit code 2")


def test_a_port_in_use_is_an_error_of_its_own(tmp_path: Path) -> None:
    body = 'give_up("port", "port 29500 is in use")'
    command = [sys.executable, "-c", PRELUDE + body, str(tmp_path)]
    with pytest.raises(PipebenchError, match="port 29500 is in use"):
        run_ranks(command, 2, tmp_path, time.monotonic() + 120)


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    program = """
import sys, time
from pathlib import Path
from pipebench_torch.processes.launch import run_ranks
run_ranks([sys.executable, "-c", *sys.argv[2:0:-1]], 2, Path(sys.argv[1]), time.monotonic() + 60)
"""
    starter = subprocess.Popen([sys.executable, "-c", program, str(tmp_path), PRELUDE + "time.sleep(600)"])
    until = time.monotonic() + 50
    while len(list(tmp_path.glob("pid-*"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    starter.kill()
    starter.wait()
    pids = [int(file.read_text()) for file in tmp_path.glob("pid-*")]
    assert len(pids) == 2
    assert not any(alive(pid) for pid in pids)
