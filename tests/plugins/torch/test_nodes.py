"""Several machines: two agents of torchrun on this one."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.formats.documents import write_document
from pipebench_torch.plugin import ExecutorOptions
from pipebench_torch.processes.launch import RanksFailed, run_ranks
from pipebench_torch.processes.nodes import RunNode, node_of
from tests.plugins.torch.small import diamond, problem_of, stages
from tests.plugins.torch.test_launch import PRELUDE, alive, start_limit_s

PLAN = Plan(stages=stages([("a", "b0", "b"), ("c",), ("concat", "d", "e")], micro_batch=2))


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def on_two_nodes(
    folder: Path, body: str, limits_s: tuple[float, float] = (120.0, 120.0), **facts: str
) -> list[str]:
    """What two nodes of one process each say of a program; node 1 is told other facts where some are given."""
    port, said = free_port(), ["", ""]

    def one(rank: int) -> None:
        own = folder / f"node-{rank}"
        own.mkdir()
        node = RunNode(processes=(1, 1), rank=rank, port=port)
        command = [sys.executable, "-c", PRELUDE + body, str(own)]
        try:
            run_ranks(command, 2, own, time.monotonic() + limits_s[rank], node, facts if rank else {"plan": "ab"})
        except RanksFailed as error:
            said[rank] = error.message

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(2) if limits_s[rank]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for file in folder.glob("*/pid-*"):
        assert not alive(int(file.read_text()))
    return said


def test_the_same_command_on_two_nodes(tmp_path: Path) -> None:
    """Both tell the same trace, and gradients equal as on one node."""
    problem = problem_of(diamond(), 3, 8)
    write_document(tmp_path / "plan.json", "plan", PlannedProblem(problem=problem, plan=PLAN, scheduler="1f1b"))
    options = "torch[device=cpu,iterations=2,least_s=0,warmup=0,verify=yes]"
    command = [sys.executable, "-m", "pipebench", "execute", "plan.json", "--executor", options, "--json"]
    command += ["--timeout", "120", "--nnodes", "2", "--rendezvous", f"127.0.0.1:{free_port()}"]
    nodes = [
        subprocess.Popen(
            [*command, "--node-rank", str(rank)],
            cwd=tmp_path,
            env=dict(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    told = [node.communicate() for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], told
    first, second = (json.loads(out) for out, _ in told)
    assert first["measured"] == second["measured"]
    assert len(first["measured"]["memory"]) == 3
    assert first["notices"][0] == "gradients equal those of a single process: exactly, in float64"
    assert first["notices"][1].startswith("2 nodes; their clocks are aligned to ")
    schedule_order = sorted(zip(first["measured"]["lane"], first["measured"]["start_ns"], strict=True))
    assert len(schedule_order) == 2 * 3 * 4


def test_a_process_that_dies_is_named_on_every_node(tmp_path: Path) -> None:
    body = """
say("running B of stage 1, micro-batch 3" if rank else "waiting for rank 1: B of stage 0, micro-batch 3")
if rank == 0: time.sleep(600)
time.sleep(0.5)
os.kill(os.getpid(), signal.SIGKILL)
"""
    said = on_two_nodes(tmp_path, body, plan="ab")
    assert said == ["rank 1 was killed by SIGKILL (out of memory?) while running B of stage 1, micro-batch 3"] * 2


def test_a_process_that_hangs_is_named_on_every_node(tmp_path: Path) -> None:
    body = """
say("running F of stage 1, micro-batch 0" if rank else "waiting for rank 1: F of stage 1, micro-batch 0")
time.sleep(600)
"""
    said = on_two_nodes(tmp_path, body, limits_s=(start_limit_s(),) * 2, plan="ab")
    assert said == ["the time limit was reached: rank 1 was running F of stage 1, micro-batch 0"] * 2


def test_a_node_with_another_plan_is_refused(tmp_path: Path) -> None:
    said = on_two_nodes(tmp_path, "", plan="cd")
    assert all("runs something else: its plan is" in message for message in said)


def test_a_node_that_does_not_come(tmp_path: Path) -> None:
    said = on_two_nodes(tmp_path, "", limits_s=(start_limit_s(), 0.0))
    assert said[0].startswith("node 1 of 2 did not come to 127.0.0.1:")


@pytest.mark.parametrize(
    ("text", "host", "where"),
    [
        ("[fd00::1]:29500", "fd00::1", "[fd00::1]:29500"),
        ("fd00::1:29500", "fd00::1", "[fd00::1]:29500"),
        ("host:29500", "host", "host:29500"),
    ],
)
def test_a_rendezvous_may_be_an_ipv6_address(text: str, host: str, where: str) -> None:
    node = node_of(ExecutorOptions(rendezvous=text, nnodes=2), 2)
    assert (node.host, node.port, node.where) == (host, 29500, where)


def test_ranks_are_dealt_in_blocks() -> None:
    def node(world: int, **options: object) -> RunNode:
        return node_of(ExecutorOptions(rendezvous="host:1", **options), world)

    assert node(4, nnodes=2).processes == (2, 2)
    assert node(5, nnodes=2, node_rank=1).ranks == range(3, 5)
    assert node(4, nnodes=2, processes_per_node=3).processes == (3, 1)
    assert node(4).processes == (4,)
    for options, reason in (
        ({"nnodes": 2, "processes_per_node": 1}, "2 nodes of 1 are 2"),
        ({"nnodes": 2, "processes_per_node": 4}, "leave node 1 without one"),
        ({"nnodes": 2, "rendezvous": ""}, "need a rendezvous"),
        ({"rendezvous": "host"}, "is not HOST:PORT"),
    ):
        with pytest.raises(PipebenchError, match=reason):
            node_of(ExecutorOptions(**{"rendezvous": "host:1", **options}), 4)
