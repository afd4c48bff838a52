"""Stages whose operators are split: equal to replicas where they split alike, less than the whole elsewhere."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.check import check_plan
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile

BATCH, IN, HIDDEN, OUT = 8, 6, 10, 4
SIZES = {"x": IN, "h": HIDDEN, "y": OUT}


def tensor(name: str, producer: str | None = None) -> Tensor:
    size = 4.0 * SIZES[name]
    gradient = size if producer else 0.0
    return Tensor(name=name, producer=producer, forward_bytes_per_sample=size, gradient_bytes_per_sample=gradient)


def linear(name: str, read: str, made: str, k: int, n: int) -> Operator:
    axes = {read: ("batch", "k"), made: ("batch", "n"), f"{name}.w": ("k", "n")}
    return Operator(
        name=name, kind="linear", dims={"k": k, "n": n}, inputs=(read,), parameters=(f"{name}.w",), axes=axes
    )


GRAPH = OperatorGraph(
    name="two layers",
    operators=(linear("a", "x", "h", IN, HIDDEN), linear("b", "h", "y", HIDDEN, OUT)),
    tensors=(tensor("x"), tensor("h", "a"), tensor("y", "b")),
    parameters=(
        Parameter(name="a.w", bytes=4 * IN * HIDDEN),
        Parameter(name="b.w", bytes=4 * HIDDEN * OUT),
    ),
)
NAMES = ("a", "b")


def problem_on(devices: int, optimizer_sharding: str = "none", latency_s: float = 0.0) -> Problem:
    saved = {"a": 4.0 * IN, "b": 4.0 * (HIDDEN + OUT)}
    costs = tuple(
        OperatorCosts(
            operator=name,
            forward_s=(100e-9, 800e-9),
            backward_s=(300e-9, 2400e-9),
            saved_bytes_per_sample=saved[name],
        )
        for name in NAMES
    )
    profile = Profile(
        name="p", graph=GRAPH, costs=(DeviceCosts(device_type="gpu", micro_batches=(1, 8), operators=costs),)
    )
    inside = LinkLevel(name="node", group=2, latency_s=latency_s, bandwidth_bytes_s=1e9)
    across = LinkLevel(
        name="all", group=8, latency_s=latency_s, bandwidth_bytes_s=1e9, shared_bandwidth_bytes_s=1e9
    )
    on = Cluster(
        name="c",
        types=(DeviceType(name="gpu", memory_bytes=10**9),),
        devices=("gpu",) * devices,
        levels=(inside, across),
    )
    regime = Regime(mode="sync", optimizer="adam", optimizer_sharding=optimizer_sharding)  # type: ignore[arg-type]
    return Problem(profile=profile, cluster=on, mini_batch=BATCH, regime=regime)


def split_stage(devices: int, a: dict[str, int], b: dict[str, int], replicas: int = 1) -> Stage:
    return Stage(
        operators=NAMES,
        devices=tuple(range(devices)),
        data_parallel=replicas,
        tensor_parallel=devices // replicas,
        micro_batch=BATCH,
        sharding=(a, b),
    )


@pytest.mark.parametrize("devices", [2, 4, 8])
@pytest.mark.parametrize("sharded_by", ["none", "zero1", "zero3"])
def test_samples_split_over_devices_cost_what_replicas_cost(devices: int, sharded_by: str) -> None:
    problem = problem_on(devices, sharded_by, latency_s=3e-9)
    model = CostModel(problem)
    cut = {"batch": devices}
    split = split_stage(devices, cut, cut)
    replicas = msgspec.structs.replace(split, data_parallel=devices, tensor_parallel=1, sharding=())
    mixed = split_stage(devices, {"batch": devices // 2}, {"batch": devices // 2}, replicas=2)
    for other in (split, mixed):
        assert model.stage_times(other) == model.stage_times(replicas)
        memory = [model.stage_memory(Plan(stages=(stage,)), 0, []) for stage in (other, replicas)]
        assert memory[0] == memory[1]
        assert check_plan(problem, Plan(stages=(other,))).status == "valid"


def test_columns_then_rows_reduce_once_each_way() -> None:
    """Megatron's pair: the first product cut in its columns, the second in its rows, no change of layout."""
    model = CostModel(problem_on(2))
    stage = split_stage(2, {"n": 2}, {"k": 2})
    times = model.stage_times(stage)
    ring = 4 * BATCH * OUT  # 2 (q - 1) / q of the result, q = 2, one byte a nanosecond
    assert times.forward == 800 // 2 * 2 + ring
    assert times.backward == 2400 // 2 * 2  # x is an input of the model: no gradient to reduce
    assert times.all_reduce == 0
    memory = model.stage_memory(Plan(stages=(stage,)), 0, [])
    assert memory.held == (4 + 4 + 8) * (IN * HIDDEN + HIDDEN * OUT) // 2
    # a keeps x whole, b keeps h in halves and y whole.
    assert memory.per_micro_batch == 4 * BATCH * (IN + HIDDEN // 2 + OUT)


def test_a_change_of_layout_is_paid_once_forward_and_once_backward() -> None:
    model = CostModel(problem_on(2))
    kept = model.stage_times(split_stage(2, {"batch": 2}, {"batch": 2}))
    changed = model.stage_times(split_stage(2, {"batch": 2}, {"n": 2}))
    # b needs all 8 samples of h and holds 4; its gradient of h is whole on both devices, and of it a needs 4.
    summed = 4 * BATCH * HIDDEN
    assert changed.forward == kept.forward + 4 * BATCH // 2 * HIDDEN
    assert changed.backward == kept.backward + summed
    assert changed.all_reduce == 4 * IN * HIDDEN


def test_gradients_change_their_layout_too() -> None:
    model = CostModel(problem_on(2))
    times = model.stage_times(split_stage(2, {"k": 2}, {"batch": 2}))
    # h is summed whole on both devices, so b has its samples; of the gradient a needs all 8 samples and holds 4.
    assert times.forward == 400 + 400 + 4 * BATCH * HIDDEN
    assert times.backward == 1200 + 1200 + 4 * BATCH // 2 * HIDDEN


def test_a_layout_that_two_operators_read_is_made_once() -> None:
    problem = problem_on(2)
    again = linear("c", "h", "z", HIDDEN, OUT)
    graph = msgspec.structs.replace(
        GRAPH,
        operators=(*GRAPH.operators, again),
        tensors=(
            *GRAPH.tensors,
            Tensor(name="z", producer="c", forward_bytes_per_sample=0, gradient_bytes_per_sample=0),
        ),
        parameters=(*GRAPH.parameters, Parameter(name="c.w", bytes=0)),
    )
    costs = problem.profile.costs[0]
    free = OperatorCosts(operator="c", forward_s=(0.0, 0.0), backward_s=(0.0, 0.0))
    profile = msgspec.structs.replace(
        problem.profile, graph=graph, costs=(msgspec.structs.replace(costs, operators=(*costs.operators, free)),)
    )
    model = CostModel(msgspec.structs.replace(problem, profile=profile))
    two = split_stage(2, {"batch": 2}, {"n": 2})
    three = msgspec.structs.replace(two, operators=("a", "b", "c"), sharding=({"batch": 2}, {"n": 2}, {"n": 2}))
    assert model.stage_times(three).forward == model.stage_times(two).forward
    other = msgspec.structs.replace(three, sharding=({"batch": 2}, {"n": 2}, {"k": 2}))
    assert model.stage_times(other).forward > model.stage_times(two).forward


def test_devices_left_idle_fetch_what_they_need() -> None:
    model = CostModel(problem_on(4))
    times = model.stage_times(split_stage(4, {"batch": 2}, {"batch": 4}))
    assert times.forward == 400 + 200 + 4 * (BATCH // 4) * HIDDEN


splits = st.fixed_dictionaries(
    {"batch": st.sampled_from([1, 2, 4]), "k": st.integers(1, 4), "n": st.integers(1, 4)}
)


@given(splits, splits)
def test_shares_make_up_the_whole(a: dict[str, int], b: dict[str, int]) -> None:
    problem = problem_on(8)
    model = CostModel(problem)
    for operator, split in (("a", a), ("b", b)):
        parts = split["batch"] * split["k"] * split["n"]
        if parts > 8:
            return
        stage = split_stage(8, a, b)
        whole = model.times.at(BATCH // split["batch"])[0][GRAPH.index[operator]]
        assert model.stage_times(stage).forward * parts >= int(whole) * split["batch"]


def test_tied_weights_split_in_two_ways_are_held_in_both() -> None:
    problem = problem_on(2)
    tied = msgspec.structs.replace(
        GRAPH.operators[1], parameters=("b.w", "a.w"), axes=GRAPH.operators[1].axes | {"a.w": ("n", "k")}
    )
    graph = msgspec.structs.replace(GRAPH, operators=(GRAPH.operators[0], tied))
    problem = msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, graph=graph))
    model = CostModel(problem)
    both = 4 * HIDDEN * (IN + OUT)
    assert model.parameter_bytes(split_stage(2, {"n": 2}, {"n": 2})) == both // 2
    assert model.parameter_bytes(split_stage(2, {"n": 2}, {"batch": 2})) == both + 4 * IN * HIDDEN // 2
