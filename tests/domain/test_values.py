"""Values refuse what cannot be: each with a message that says what and where."""

from typing import Any

import msgspec
import pytest

from pipebench.domain.cluster import DeviceType, LinkLevel
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Provenance
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Lane, PeriodicSchedule
from pipebench.domain.topology import topological_order
from pipebench.domain.trace import MemoryTimeline
from pipebench.domain.verdict import Verdict
from tests.builders import chain_problem, cluster, stages_plan

NAN, INF = float("nan"), float("inf")


def tensor(**fields: Any) -> Tensor:
    return Tensor(**{"name": "t", "forward_bytes_per_sample": 1.0, "gradient_bytes_per_sample": 1.0, **fields})


def operators(*made: Operator, tensors: tuple[Tensor, ...] = (), parameters: tuple[Parameter, ...] = ()) -> Any:
    return OperatorGraph(name="g", operators=made, tensors=tensors, parameters=parameters)


A = Operator(name="a", kind="op")


FOUR = stages_plan([[0], [1], [0], [1]])


def pair(kinds: str, stage: tuple[int, ...], micro_batch: tuple[int, ...], together: tuple[int, ...]) -> Lane:
    return Lane(devices=(0,), stage=stage, micro_batch=micro_batch, kinds=kinds, together=together)


def collective_way(**said: tuple[float, ...]) -> Alternative:
    """A second forward, two backward."""
    return Alternative(
        id="tp2", forward_s=(1.0,), backward_s=(2.0,), parameter_bytes=0, saved_bytes_per_sample=0.0, **said
    )  # fmt: skip


def costs_of(collective_s: tuple[float, ...]) -> OperatorCosts:
    way = collective_way(forward_collective_s=collective_s)
    return OperatorCosts(operator="a", forward_s=(1.0,), backward_s=(2.0,), alternatives=(way,))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Parameter(name="w", bytes=-1), r"parameter 'w': bytes is -1"),
        (lambda: Parameter(name="w", bytes=10**30), "at most"),
        (lambda: Parameter(name="w", bytes=10**400), "at most"),
        (lambda: tensor(forward_bytes_per_sample=NAN), "is nan"),
        (lambda: tensor(gradient_bytes_per_sample=INF), "is inf"),
        (lambda: tensor(name=""), "empty name"),
        (lambda: Operator(name="a\x1b[31m", kind="op"), "control characters"),
        (lambda: Operator(name="a" * 2000, kind="op"), "over 1000 letters"),
        (lambda: Operator(name="a", kind="op", dims={"n": 0}), "dim 'n' is 0"),
        (lambda: Operator(name="a", kind="op", dims={"batch": 2}), "reserved"),
        (lambda: Operator(name="a", kind="op", axes={"t": ("m",)}), "axis 'm' of 't'"),
        (operators, "no operators"),
        (lambda: operators(A, A), "operator 'a' occurs twice"),
        (lambda: operators(msgspec.structs.replace(A, inputs=("t",))), "reads 't'"),
        (lambda: operators(msgspec.structs.replace(A, parameters=("w", "w"))), "occurs twice"),
        (lambda: operators(msgspec.structs.replace(A, axes={"x": ()})), "neither a tensor nor a parameter"),
        (lambda: operators(A, tensors=(tensor(producer="z"),)), "producer 'z'"),
        (lambda: operators(A, tensors=(tensor(),), parameters=(Parameter(name="t", bytes=1),)), "both"),
        (
            lambda: operators(
                A, Operator(name="b", kind="op", inputs=("t",), constant=True), tensors=(tensor(producer="a"),)
            ),
            "constant but reads",
        ),
        (lambda: OperatorCosts(operator="a", forward_s=(1e11,), backward_s=(1.0,)), "forward_s"),
        (
            lambda: OperatorCosts(operator="a", forward_s=(1.0,), backward_s=(1.0,), weight_gradient_s=(2.0,)),
            "more than the backward",
        ),
        (
            lambda: Alternative(
                id="", forward_s=(1.0,), backward_s=(1.0,), parameter_bytes=0, saved_bytes_per_sample=0
            ),
            "empty name",
        ),
        (lambda: collective_way(forward_collective_s=(1.5,)), "forward_collective_s is more than forward_s"),
        (lambda: collective_way(backward_collective_s=(2.5,)), "backward_collective_s is more than backward_s"),
        (lambda: collective_way(backward_collective_s=(NAN,)), "backward_collective_s"),
        (
            lambda: DeviceCosts(device_type="gpu", micro_batches=(1,), operators=(costs_of((0.1, 0.2)),)),
            "one time for each",
        ),
        (lambda: Operator(name="a", kind="op", layer=-(2**64)), "layer is -18446744073709551616"),
        (lambda: Operator(name="a", kind="op", attributes={"stride": 2**32}), "stride is 4294967296"),
        (lambda: DeviceType(name="gpu", memory_bytes=0), "memory"),
        (lambda: DeviceType(name="gpu", memory_bytes=1, peak_flops={"fp32": INF}), "a rate is inf"),
        (lambda: LinkLevel(name="l", group=1, bandwidth_bytes_s=INF), "bandwidth is inf"),
        (lambda: LinkLevel(name="l", group=1, bandwidth_bytes_s=1e-300), "bandwidth is 1e-300"),
        (lambda: LinkLevel(name="l", group=0, bandwidth_bytes_s=1), "group is 0"),
        (lambda: cluster(0), "0"),
        (lambda: chain_problem([1], [1], cluster(1), mini_batch=10**18), "mini_batch"),
        (lambda: Pins(micro_batch=0), "micro_batch"),
        (lambda: Pins(reserve=1.0), "reserve"),
        (lambda: Stage(operators=("a",), devices=(0,), micro_batch=0), "micro_batch is 0"),
        (lambda: Stage(operators=("a",), devices=(-1,), micro_batch=1), "negative"),
        (lambda: Stage(operators=("a",), devices=(0,), micro_batch=2, in_flight=3), "multiple"),
        (lambda: Stage(operators=("a",), devices=(0,), micro_batch=1, choice=("x", "y")), "2 entries"),
        (lambda: Plan(stages=()), "at least one stage"),
        (lambda: msgspec.structs.replace(stages_plan([[0], [1]]), order_edges=((0, 2),)), "not there"),
        (
            lambda: msgspec.structs.replace(stages_plan([[0], [1], [2]]), pipelines=2),
            "3 stages are no 2 pipelines",
        ),
        (lambda: Plan(stages=FOUR.stages, pipelines=2, order_edges=((1, 2),)), "from one pipeline to another"),
        (lambda: pair("FB", (0, 0), (0, 1), (1,)), "position 1, the lane has 2 tasks"),
        (lambda: pair("BF", (0, 0), (0, 1), (0,)), "an F and the B or I behind it"),
        (lambda: pair("FW", (0, 0), (0, 1), (0,)), "an F and the B or I behind it"),
        (lambda: pair("FB", (3, 3), (1, 1), (0,)), "its own backward"),
        (lambda: pair("FBFB", (0, 1, 2, 3), (0, 0, 0, 0), (2, 0)), "share no task"),
        (lambda: pair("FFB", (0, 1, 2), (0, 0, 0), (0, 1)), "an F and the B"),
        (lambda: msgspec.structs.replace(chain_problem([1], [1], cluster(1)), overlap=1.5), "overlap is 1.5"),
        (lambda: PeriodicSchedule(period_ns=2**70, stage=(), kinds="", start_ns=(), shift=()), "period_ns"),
        (lambda: MemoryTimeline(device=0, time_ns=(0, 1), bytes=(5,)), "2 instants and 1 figures"),
        (lambda: Verdict(status="invalid"), "witness"),
        (lambda: PlanResult(plan=stages_plan([[0]]), claimed_s=NAN), "claimed_s is nan"),
    ],
)
def test_refused(make: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        make()


def test_a_pair_is_of_two_tasks_that_may_run_at_once() -> None:
    lane = pair("FFBFIW", (0, 0, 0, 0, 0, 0), (0, 1, 0, 2, 1, 1), (1, 3))
    assert lane.together == (1, 3)
    pair("FB", (0, 1), (0, 0), (0,))


def test_equal_numbers_have_one_identity() -> None:
    first = chain_problem([1], [1], cluster(1, bandwidth=1e9))
    second = chain_problem([1], [1], cluster(1, bandwidth=10**9, latency_s=-0.0))
    assert first == second
    assert first.problem_id == second.problem_id
    assert hash(first) == hash(second)


def test_who_measured_does_not_change_the_problem() -> None:
    problem = chain_problem([1], [1], cluster(1))
    profile = msgspec.structs.replace(problem.profile, provenance=Provenance(date="2026-11-21"))
    again = msgspec.structs.replace(problem, profile=profile)
    assert again != problem
    assert again.problem_id == problem.problem_id
    assert again.workload_id == problem.workload_id


def test_a_long_cycle_is_shortened() -> None:
    size = 20_000
    with pytest.raises(InvalidValue) as caught:
        topological_order([[(node + 1) % size] for node in range(size)], [f"op{node}" for node in range(size)])
    assert len(str(caught.value)) < 200
    assert "op0 -> op1" in str(caught.value)
