"""Traces of a run that was launched elsewhere: clocks from messages, iterations and work by rank."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from pipebench.bench.attachment import attached, clock_offsets
from pipebench.bench.score import prediction_error
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.formats.chrome_trace import read_chrome_trace
from tests.builders import chain_problem, cluster, stages_plan
from tests.plugins.running import services

AHEAD_US = (0, 700_000, -300_000)
"""By how much each rank's clock is ahead of the first's."""
ITERATION_US = 1000
WORK_US = (100, 300, 200)


def event(name: str, start: float, lasts: float, category: str = "cpu_op", **arguments: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": lasts, "args": arguments}


def message(way: str, call: str, peer: int, tag: int, start: float, lasts: float) -> list[dict[str, Any]]:
    """As gloo's are recorded: the call, which returns at once, and what lasts until it is done."""
    inputs = ["", "", str(peer), str(tag)]
    return [
        event(call, start - 5, 10, **{"Concrete Inputs": inputs}),
        event(f"gloo:{way}", start, lasts, "user_annotation"),
    ]


def rank_file(folder: Path, rank: int, iterations: int = 4, zipped: bool = False) -> str:
    """A chain of three ranks: each sends down 20 us after it worked, and gets an answer; 7 us on the way."""
    shift = 1e6 + AHEAD_US[rank]
    events = []
    for step in range(iterations):
        base = shift + step * ITERATION_US * (3 if step == 0 else 1)
        events.append(
            event(f"ProfilerStep#{step}", base, ITERATION_US * (3 if step == 0 else 1), "user_annotation")
        )
        events.append(event("aten::mm", base + 10, WORK_US[rank]))
        events.append(event("aten::inner", base + 20, 5))
        if rank < 2:
            events += message("send", "c10d::send", rank + 1, step, base + 400 + 50 * rank, 7)
            events += message("recv", "c10d::recv_", rank + 1, 100 + step, base + 300, 207 + 50 * rank)
        if rank > 0:
            events += message("recv", "c10d::recv_", rank - 1, step, base + 100, 307 + 50 * (rank - 1))
            events += message("send", "c10d::send", rank - 1, 100 + step, base + 500 + 50 * (rank - 1), 7)
    document = {"traceEvents": events, "distributedInfo": {"rank": rank}, "baseTimeNanoseconds": 10**18}
    data = json.dumps(document).encode()
    path = folder / f"rank{rank}.json{'.gz' if zipped else ''}"
    path.write_bytes(gzip.compress(data) if zipped else data)
    return str(path)


def row(simulated_s: float) -> Row:
    return Row(
        model="m", profile="m", cluster="flat", devices=3, mini_batch=2, regime="sync", problem_id="p",
        workload_id="w", planner="uniform", status="ok", simulated_s=simulated_s,
    )  # fmt: skip


def test_clocks_follow_from_messages_over_other_ranks(tmp_path: Path) -> None:
    traces = [read_chrome_trace(rank_file(tmp_path, rank, zipped=rank == 1)) for rank in range(3)]
    assert clock_offsets(traces) == pytest.approx([0, -AHEAD_US[1] * 1000, -AHEAD_US[2] * 1000], abs=2)


def test_the_slowest_ranks_median_after_warm_up_and_work_by_rank(tmp_path: Path) -> None:
    problem = chain_problem([100, 300, 200], [0, 0, 0], cluster(3), mode="sync", mini_batch=2)
    plan = stages_plan([[0], [1], [2]])
    trace = services().simulate(problem, plan, services().schedule("gpipe", problem, plan))
    files = [read_chrome_trace(rank_file(tmp_path, rank)) for rank in (2, 0, 1)]
    made = attached(row(2e-3), plan, trace, files, warmup=1)
    assert made.measured_s == pytest.approx(1e-3)
    assert made.error == pytest.approx(1.0)
    assert [rank.busy_s for rank in made.ranks] == pytest.approx([100e-6, 300e-6, 200e-6])
    assert [rank.simulated_busy_s for rank in made.ranks] == pytest.approx([200e-9, 600e-9, 400e-9])
    assert made.start_skew_s == pytest.approx(0, abs=1e-8)


def test_bad_traces(tmp_path: Path) -> None:
    problem = chain_problem([1, 1, 1], [1, 1, 1], cluster(3), mode="sync", mini_batch=2)
    plan = stages_plan([[0], [1], [2]])
    trace = services().simulate(problem, plan, services().schedule("gpipe", problem, plan))
    files = [read_chrome_trace(rank_file(tmp_path, rank, iterations=1)) for rank in range(3)]
    with pytest.raises(PipebenchError, match="1 iterations, 1 are warm-up"):
        attached(row(1.0), plan, trace, files, warmup=1)
    with pytest.raises(PipebenchError, match="ranks 0, 1, the plan has ranks 0 to 2"):
        attached(row(1.0), plan, trace, files[:2], warmup=0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{}", "not a trace"),
        (b"\x1f\x8bnothing", "not a trace"),
        (b'{"traceEvents": [3]}', "not a trace"),
        (b'{"traceEvents": []}', "marks no iterations"),
        (b'{"traceEvents": [{"ph":"X","name":"ProfilerStep#1","ts":1,"dur":2}]}', "does not say its rank"),
    ],
)
def test_files_that_are_no_traces(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(PipebenchError, match=reason):
        read_chrome_trace(str(path))


def test_the_error_of_a_prediction() -> None:
    assert prediction_error(1.0, 2.0) == -0.5
    assert prediction_error(None, 2.0) is None
    assert prediction_error(1.0, None) is None
