"""Traces of a run that was launched elsewhere: clocks from messages, iterations and work by rank."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bench.attachment.ranks import attach_ranks, clock_offsets
from pipebench.bench.score import prediction_error
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.trace import Trace
from pipebench.formats.chrome_trace import RankMessage, RankTrace, TaskSpan, read_chrome_trace
from tests.builders import chain_problem, cluster, stages_plan
from tests.plugins.running import services

AHEAD_US = (0, 700_000, -300_000)
"""By how much each rank's clock is ahead of the first's."""
ITERATION_US = 1000
WORK_US = (100, 300, 200)


def event(name: str, start: float, lasts: float, category: str = "cpu_op", **arguments: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": lasts, "args": arguments}


def message(way: str, call: str, peer: int, tag: int, start: float, lasts: float) -> list[dict[str, Any]]:
    """As gloo's are recorded: the call, and a span that begins later, maybe when all is sent, until it is done."""
    inputs, late = ["", "", str(peer), str(tag)], 6 if way == "send" and tag < 100 else 1
    return [
        event(call, start, 10, **{"Concrete Inputs": inputs}),
        event(f"gloo:{way}", start + late, lasts - late, "user_annotation"),
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


def exchange(rank: int, sent: dict[int, list[int]], got: dict[int, list[int]]) -> RankTrace:
    """A rank that only sends and gets, one message of a tag 0 after the other, by peer."""
    return RankTrace(
        rank=rank,
        steps=((0, 1),),
        sent=tuple(RankMessage(peer, 0, at, at + 1) for peer, times in sent.items() for at in times),
        got=tuple(RankMessage(peer, 0, at - 1, at) for peer, times in got.items() for at in times),
        busy=(),
    )


@given(
    ahead=st.integers(-(10**12), 10**12),
    there=st.lists(st.integers(1, 10**6), min_size=1, max_size=5),
    back=st.lists(st.integers(1, 10**6), min_size=1, max_size=5),
)
def test_a_clock_is_known_to_half_the_fastest_round_trip(ahead: int, there: list[int], back: list[int]) -> None:
    """Whatever the messages take: the true offset is within what is said, and equal latencies give it exactly."""
    starts, answers = [1000 * n for n in range(len(there))], [5 * 10**6 + n for n in range(len(back))]
    first = exchange(0, {1: starts}, {1: [at + took for at, took in zip(answers, back, strict=True)]})
    arrivals = [at + took + ahead for at, took in zip(starts, there, strict=True)]
    second = exchange(1, {0: [at + ahead for at in answers]}, {0: arrivals})
    offset = clock_offsets([first, second])[1]
    assert offset is not None
    assert offset.within_ns is not None
    assert abs(offset.ns + ahead) <= offset.within_ns
    assert offset.within_ns <= (min(there) + min(back) + 1) // 2
    if min(there) == min(back):
        assert offset.ns == -ahead


def test_messages_one_way_bound_one_side_and_the_narrowest_way_is_taken() -> None:
    """Rank 2 is tied to 0 by slow messages, and over 1 by fast ones."""
    direct = clock_offsets([exchange(0, {1: [100]}, {}), exchange(1, {}, {0: [730]})])[1]
    assert (direct and direct.ns, direct and direct.within_ns) == (-630, None)
    ranks = [
        exchange(0, {1: [0], 2: [0]}, {1: [20], 2: [900]}),
        exchange(1, {0: [10], 2: [0]}, {0: [10], 2: [20]}),
        exchange(2, {0: [0], 1: [10]}, {0: [100], 1: [10]}),
    ]
    found = clock_offsets(ranks)
    assert [each and (each.ns, each.within_ns) for each in found] == [(0, 0), (0, 10), (0, 20)]
    assert clock_offsets([exchange(0, {}, {}), exchange(1, {}, {})])[1] is None


def test_clocks_follow_from_messages_over_other_ranks(tmp_path: Path) -> None:
    traces = [read_chrome_trace(rank_file(tmp_path, rank, zipped=rank == 1)) for rank in range(3)]
    assert [o and o.ns for o in clock_offsets(traces)] == pytest.approx(
        [0, -AHEAD_US[1] * 1000, -AHEAD_US[2] * 1000], abs=2
    )


def test_the_slowest_ranks_median_after_warm_up_and_work_by_rank(tmp_path: Path) -> None:
    problem = chain_problem([100, 300, 200], [0, 0, 0], cluster(3), mode="sync", mini_batch=2)
    plan = stages_plan([[0], [1], [2]])
    trace = services().simulate(problem, plan, services().schedule("gpipe", problem, plan))
    files = [read_chrome_trace(rank_file(tmp_path, rank)) for rank in (2, 0, 1)]
    made = attach_ranks(plan, trace, 2, files, warmup=1)
    assert made.measured_s == pytest.approx(1e-3)
    assert [rank.busy_s for rank in made.ranks] == pytest.approx([100e-6, 300e-6, 200e-6])
    assert [rank.simulated_busy_s for rank in made.ranks] == pytest.approx([200e-9, 600e-9, 400e-9])
    assert made.start_skew_s == pytest.approx(0, abs=1e-8)


def test_a_stage_alone_on_its_rank_is_the_work_of_an_iteration(tmp_path: Path) -> None:
    problem = chain_problem([100, 300, 200], [0, 0, 0], cluster(3), mode="sync", mini_batch=2)
    plan = stages_plan([[0], [1], [2]])
    trace = services().simulate(problem, plan, services().schedule("gpipe", problem, plan))
    files = [read_chrome_trace(rank_file(tmp_path, rank)) for rank in range(3)]
    made = attach_ranks(plan, trace, 2, files, warmup=1)
    assert [(each.stage, each.marked) for each in made.stages] == [(0, False), (1, False), (2, False)]
    assert [each.measured_s for each in made.stages] == pytest.approx([50e-6, 150e-6, 100e-6])
    assert [each.simulated_s for each in made.stages] == pytest.approx([100e-9, 300e-9, 200e-9])
    assert made.stages[1].error == pytest.approx((300e-9 - 150e-6) / 150e-6)


def test_replicas_in_turn_have_unequal_parts_of_an_iteration(tmp_path: Path) -> None:
    """Of three micro-batches the first of two replicas runs two; each takes as long on both."""
    problem = chain_problem([100, 200], [0, 0], cluster(3), mode="sync", mini_batch=3)
    plan = stages_plan([[0], [1]])
    first = replace(plan.stages[0], devices=(0, 2), data_parallel=2, replicas="round_robin")
    plan = replace(plan, stages=(first, plan.stages[1]))
    trace = services().simulate(problem, plan, services().schedule("gpipe", problem, plan))
    steps = ((0, 10_000), (10_000, 20_000))
    busy = {0: 4000, 1: 9000, 2: 2000}
    files = [
        RankTrace(rank=rank, steps=steps, sent=(), got=(), busy=tuple((at, at + taken) for at, _ in steps))
        for rank, taken in busy.items()
    ]
    made = attach_ranks(plan, trace, 3, files, warmup=1)
    assert [each.measured_s for each in made.stages] == pytest.approx([2e-6, 3e-6])
    forward_and_backward = [each.simulated_s for each in made.stages]
    runs = (2, 3, 1)
    assert [rank.simulated_busy_s for rank in made.ranks] == pytest.approx(
        [count * forward_and_backward[stage] for count, stage in zip(runs, (0, 1, 0), strict=True)]
    )


def test_marked_tasks_tell_stages_that_share_a_rank(tmp_path: Path) -> None:
    """Names of torch.distributed.pipelining; what a task waits is not its work, nor does the warm-up count."""
    events = [event(f"ProfilerStep#{step}", 1000 * step, 1000, "user_annotation") for step in range(2)]
    for step in (0, 1):
        for number, (name, lasts) in enumerate((("PP:0F0", 40), ("PP:1F0", 20), ("PP:1B0", 50), ("PP:0B0", 90))):
            start = 1000 * step + 200 * number
            events.append(event(name, start, 150, "user_annotation"))
            events.append(event("aten::mm", start + 10, lasts if step else 5))
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}))
    found = read_chrome_trace(str(path))
    assert found.tasks[0] == TaskSpan(stage=0, kind="F", micro_batch=0, start_ns=0, end_ns=150_000)
    stages = [Stage(operators=(f"op{n}",), devices=(0,), data_parallel=1, micro_batch=1) for n in (0, 1)]
    plan = Plan(stages=tuple(stages), placement="listed")
    trace = Trace(
        origin="simulated",
        lanes=((0,),),
        lane=(0, 0, 0, 0),
        stage=(0, 1, 1, 0),
        micro_batch=(0, 0, 0, 0),
        kinds="FFBB",
        start_ns=(0, 40, 60, 110),
        end_ns=(40, 60, 110, 200),
        total_ns=200,
    )
    made = attach_ranks(plan, trace, 2, [found], warmup=1)
    assert [(each.stage, each.marked) for each in made.stages] == [(0, True), (1, True)]
    assert [each.simulated_s for each in made.stages] == pytest.approx([130e-9, 70e-9])
    assert [each.measured_s for each in made.stages] == pytest.approx([130e-6, 70e-6])


def test_the_word_of_a_schedule_of_one_stage(tmp_path: Path) -> None:
    events = [event("ProfilerStep#0", 0, 1000, "user_annotation"), event("Forward 3", 10, 30, "user_annotation")]
    events.append(event("Backward 3", 50, 60, "user_annotation"))
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0}}))
    tasks = read_chrome_trace(str(path)).tasks
    assert [(each.stage, each.kind, each.micro_batch) for each in tasks] == [(None, "F", 3), (None, "B", 3)]


def test_bad_traces(tmp_path: Path) -> None:
    problem = chain_problem([1, 1, 1], [1, 1, 1], cluster(3), mode="sync", mini_batch=2)
    plan = stages_plan([[0], [1], [2]])
    trace = services().simulate(problem, plan, services().schedule("gpipe", problem, plan))
    files = [read_chrome_trace(rank_file(tmp_path, rank, iterations=1)) for rank in range(3)]
    with pytest.raises(PipebenchError, match="1 iterations, 1 are warm-up"):
        attach_ranks(plan, trace, 2, files, warmup=1)
    with pytest.raises(PipebenchError, match="ranks 0, 1, 1, the plan has ranks 0 to 2"):
        attach_ranks(plan, trace, 2, [*files[:2], files[1]], warmup=0)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"{}", "not a trace"),
        (b"\x1f\x8bnothing", "not valid gzip"),
        (b'{"traceEvents": [3]}', "not a trace"),
        (b'{"traceEvents": [{"ph": "X", "na', "a trace that ends in the middle"),
        (gzip.compress(b'{"traceEvents": [{"ph": "X", "na', mtime=0), "a trace that ends in the middle"),
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
