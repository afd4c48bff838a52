"""What a user sees when real processes fail, and that other rows are kept."""

import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.domain.errors import PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench_models.graph_builder import GraphBuilder
from pipebench_models.operators import linear
from pipebench_torch import executor
from pipebench_torch.processes import nodes
from tests.costs.test_context import plan as replicated
from tests.costs.test_context import problem as of_ranks
from tests.costs.test_experts import one_layer, one_stage
from tests.plugins.running import services
from tests.plugins.torch.small import diamond, problem_of, run, stages
from tests.plugins.torch.test_launch import start_limit_s

MARK = "PIPEBENCH_STARTED_BY"


def chain(width: int = 8) -> Problem:
    graph = GraphBuilder("chain")
    linear(graph, "b", linear(graph, "a", graph.input("x", width), width), width)
    return problem_of(graph.graph(), 2, 4)


def two_stages() -> Plan:
    return Plan(stages=stages([("a",), ("b",)]))


def failure(problem: Problem, **options: object) -> str:
    plan = two_stages()
    with pytest.raises(PipebenchError) as caught:
        run(problem, plan, services().schedule("gpipe", problem, plan), **options)
    return str(caught.value)


@pytest.fixture(autouse=True)
def marked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is started here knows by whom, also when its parent is gone."""
    monkeypatch.setenv(MARK, str(os.getpid()))


def started(module: str) -> list[int]:
    """Processes of a module that this one started, at first or second hand."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if module.encode() in words and f"{MARK}={os.getpid()}".encode() in environment:
            found.append(int(folder.name))
    return sorted(found)


def worker_pids() -> list[int]:
    """The processes of a run."""
    return started("pipebench_torch.running.worker")


def signal_one(number: int) -> threading.Thread:
    """Send a signal to the second process once both are there."""

    def wait_and_send() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            pids = worker_pids()
            if len(pids) == 2:
                time.sleep(0.5)
                os.kill(pids[1], number)
                return
            time.sleep(0.05)

    thread = threading.Thread(target=wait_and_send)
    thread.start()
    return thread


def test_a_killed_process_is_named() -> None:
    thread = signal_one(signal.SIGKILL)
    message = failure(chain(), iterations=100_000)
    thread.join()
    assert message.startswith("rank 1 was killed by SIGKILL")
    assert worker_pids() == []


def test_a_stopped_process_ends_with_the_time_limit() -> None:
    thread = signal_one(signal.SIGSTOP)
    limit_s = 2 * start_limit_s()
    began = time.monotonic()
    message = failure(chain(), iterations=100_000, timeout_s=limit_s)
    thread.join()
    assert "rank" in message
    assert time.monotonic() - began < limit_s + 60
    assert worker_pids() == []


def test_out_of_memory_says_which_rank() -> None:
    message = failure(chain(12_000), limit_memory=True)
    assert "ran out of memory" in message
    assert message.startswith("rank ")


def test_a_port_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        message = failure(chain(), rendezvous=f"127.0.0.1:{port}")
    assert f"{port}" in message
    assert "in use" in message


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes.importlib.util, "find_spec", lambda name: None)
    assert failure(chain()) == "torch is not installed (pip install 'pipebench[torch]')"


def test_experts_that_ranks_share_out_are_unsupported() -> None:
    with pytest.raises(UnsupportedProblem, match="4 ranks share out experts: torch runs each operator whole"):
        executor.refuse_sharded(one_layer(4), one_stage(4))
    executor.refuse_sharded(one_layer(1), one_stage(4))


def test_sequences_that_ranks_share_out_are_unsupported() -> None:
    with pytest.raises(UnsupportedProblem, match="2 ranks share out sequences: torch runs each operator whole"):
        executor.refuse_sharded(of_ranks(2), replicated(2, 2))
    executor.refuse_sharded(of_ranks(1), replicated(2, 2))


def test_sharded_and_tensor_parallel_plans_are_unsupported() -> None:
    problem = problem_of(diamond(), 2, 4)
    names = tuple(op.name for op in problem.profile.graph.operators)
    split = Plan(stages=(Stage(operators=names, devices=(0, 1), tensor_parallel=2, micro_batch=1),))
    shards = tuple({"out_features": 2} if name == "a" else {} for name in names)
    sharded = Plan(stages=(Stage(operators=names, devices=(0,), micro_batch=1, sharding=shards),))
    for plan, reason in ((split, "stage 0 is tensor-parallel"), (sharded, "stage 0 shards its operators")):
        with pytest.raises(UnsupportedProblem, match=reason):
            executor.refuse_sharded(problem, plan)
