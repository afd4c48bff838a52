"""What a trace says of the parts of an iteration: by hand, and beside a simulation."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.bench.attachment.rank_parts import GroupGap, known_factors, rank_parts
from pipebench.bench.traced_step import median_iteration
from pipebench.domain.errors import PipebenchError
from pipebench.formats.chrome_trace import WORK, RankTrace, parse_chrome_trace, read_chrome_trace
from pipebench.simulation.step_parts import MILLION, PartedStep
from tests.bench.attachment.card_trace import (
    ADAM,
    ALL_REDUCE,
    PRODUCT,
    SEND_RECEIVE,
    Kernel,
    card_trace,
    write_trace,
)
from tests.bench.attachment.logged_row import logged_run

KERNELS: list[Kernel] = [
    (PRODUCT, 0, 300),
    (ALL_REDUCE, 250, 100),  # 50 of it behind the product
    (SEND_RECEIVE, 340, 200),  # 10 behind the all-reduce
    (PRODUCT, 500, 100),  # hides 40 of the receive
    (ADAM, 700, 50),
]


def test_a_trace_of_a_card_is_taken_apart(tmp_path: Path) -> None:
    trace = read_chrome_trace(write_trace(tmp_path / "t.json", card_trace(KERNELS, 1000)))
    found = median_iteration(trace, 1)
    assert found.iteration_ns == 1_000_000
    assert found.work_ns == {
        "kernels": 400_000,
        "optimizer": 50_000,
        "tensor_parallel": 50_000,
        "gradients": 0,
        "collectives": 0,
        "messages": 150_000,
    }
    assert found.idle_ns == 350_000
    assert (found.kernels_ns, found.communication_ns, found.exposed_ns) == (450_000, 290_000, 200_000)


@pytest.mark.parametrize(
    ("group", "kind"),
    [
        ("TENSOR_MODEL_PARALLEL_GROUP", "tensor_parallel"),
        ("mesh_tp", "tensor_parallel"),
        ("DATA_PARALLEL_GROUP_WITH_CP", "gradients"),
        ("mesh_dp_shard", "gradients"),
        ("PIPELINE_MODEL_PARALLEL_GROUP", "messages"),
        ("default_pg", "collectives"),
        (None, "collectives"),
    ],
)
def test_groups_of_ranks_say_whose_a_collective_is(tmp_path: Path, group: str | None, kind: str) -> None:
    data = card_trace([(ALL_REDUCE, 10, 100)], 200, group=group)
    trace = read_chrome_trace(write_trace(tmp_path / "t.json", data))
    assert {name: took for name, took in median_iteration(trace, 1).work_ns.items() if took} == {kind: 100_000}


def test_marks_of_the_host_beside_a_card_are_no_communication(tmp_path: Path) -> None:
    """NCCL's calls on the host, and the spans of them that the profiler draws beside the card's kernels."""
    data = card_trace([(PRODUCT, 10, 100)], 200)
    for category in ("cpu_op", "user_annotation", "gpu_user_annotation"):
        event = {"ph": "X", "cat": category, "name": "nccl:all_reduce", "ts": 560.0, "dur": 30.0}
        data["traceEvents"].append(event)
    found = median_iteration(read_chrome_trace(write_trace(tmp_path / "t.json", data)), 1)
    assert found.communication_ns == 0
    assert {name: took for name, took in found.work_ns.items() if took} == {"kernels": 100_000}


@given(st.lists(st.tuples(st.sampled_from([*WORK]), st.integers(0, 90), st.integers(0, 30)), max_size=12))
def test_no_time_counts_twice_and_none_is_lost(drawn: list[tuple[str, int, int]]) -> None:
    """Each us of an iteration belongs to the first kind of work that covers it, or is idle."""
    names = {
        "kernels": (PRODUCT, None),
        "optimizer": (ADAM, None),
        "tensor_parallel": (ALL_REDUCE, "tp"),
        "gradients": (ALL_REDUCE, "dp"),
        "collectives": (ALL_REDUCE, "world"),
        "messages": (SEND_RECEIVE, None),
    }
    trace = card_trace([], 50, steps=1)  # the first is twice as long
    for kind, start, lasts in drawn:
        name, group = names[kind]
        args = {} if group is None else {"Process Group Description": group}
        trace["traceEvents"].append(
            {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": lasts, "args": args}
        )
    trace["traceEvents"].append({"ph": "X", "cat": "kernel", "name": PRODUCT, "ts": 200, "dur": 1})
    found = median_iteration(parse_chrome_trace(json.dumps(trace).encode(), "t"), 0)
    counted = dict.fromkeys(WORK, 0)
    for instant in range(100):
        there = [kind for kind in WORK if any(k == kind and s <= instant < s + n for k, s, n in drawn)]
        if there:
            counted[there[0]] += 1000
    assert found.work_ns == counted
    assert sum(found.work_ns.values()) + found.idle_ns == found.iteration_ns == 100_000


def trace_of_logged_run(factor: float, rank: int = 0) -> RankTrace:
    """A rank whose kernels take so many times as long as simulated, its optimizer as simulated, nothing else."""
    step = PartedStep(*logged_run()[:3])
    (lane,) = [each for each in step.devices if rank in each.devices]
    kernels, optimizer = round(factor * lane.ns["kernels"]), lane.ns["optimizer"]
    total = step.total_ns + kernels - lane.ns["kernels"]
    work = {"kernels": ((0, kernels),), "optimizer": ((kernels, kernels + optimizer),)}
    return RankTrace(rank=rank, steps=((0, total),), sent=(), got=(), busy=(), work=work)  # type: ignore[arg-type]


def test_differences_of_groups_add_up_to_that_of_the_iteration() -> None:
    _, plan, _, _ = logged_run()
    step = PartedStep(*logged_run()[:3])
    made = rank_parts(plan, step.devices, [trace_of_logged_run(1.25, 5), trace_of_logged_run(1.5)], 0)
    assert [each.rank for each in made] == [0, 5]
    for each in made:
        assert sum(group.measured_ns for group in each.groups) == each.iteration_ns
        assert sum(group.simulated_ns for group in each.groups) == step.total_ns
    kernels = [each.groups[0] for each in made]
    assert [each.ratio for each in kernels] == pytest.approx([1.5, 1.25])
    factors = known_factors(made, 10)
    expected = sum(each.measured_ns for each in kernels) / sum(each.simulated_ns for each in kernels)
    assert factors["kernels"] / MILLION == pytest.approx(expected, abs=1e-6)
    assert factors["optimizer"] == MILLION


def test_a_trace_without_kernels_of_an_optimizer_settles_both_together() -> None:
    _, plan, _, _ = logged_run()
    step = PartedStep(*logged_run()[:3])
    (lane,) = [each for each in step.devices if 0 in each.devices]
    both = 2 * (lane.ns["kernels"] + lane.ns["optimizer"])
    trace = RankTrace(
        rank=0, steps=((0, 10**9),), sent=(), got=(), busy=(),
        work={"kernels": ((0, both),), "collectives": ((both, both + 7),)},
    )  # fmt: skip
    (made,) = rank_parts(plan, step.devices, [trace], 0)
    together = lane.ns["tensor_parallel"] + lane.ns["gradients"]
    assert made.groups[:2] == (
        GroupGap(("kernels", "optimizer"), both, both // 2),
        GroupGap(("tensor_parallel", "gradients"), 7, together),
    )
    assert known_factors([made], 10) == {"kernels": 2 * MILLION, "optimizer": 2 * MILLION}
    assert known_factors([made], 1) == {}


def test_no_iteration_is_left() -> None:
    with pytest.raises(PipebenchError, match="1 iterations, 2 are warm-up"):
        median_iteration(trace_of_logged_run(1.0), 2)
