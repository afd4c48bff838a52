"""The step of a framework around the kernels: closed forms, and what it changes nowhere else."""

import msgspec
import pytest

from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.costs.rings import Ring, ring_level
from pipebench.costs.step import step_costs
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Framework, StepCosts
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.tuning import USUAL_REACH
from tests.builders import chain_problem, cluster

FRAMEWORK = Framework(name="one", launch_s=1e-5, optimizer_bytes=26.0, gradient_passes=4.0, reduce_overlap=0.25)
DEVICE = DeviceType(name="fast", memory_bytes=10**9, memory_bandwidth_bytes_s=1e12)
LEVEL = LinkLevel(name="all", group=8, bandwidth_bytes_s=1e9)
NODES = (
    LinkLevel(name="node", group=8, bandwidth_bytes_s=200e9),
    LinkLevel(name="network", group=64, bandwidth_bytes_s=12.5e9, shared_bandwidth_bytes_s=100e9),
)


def on(*levels: LinkLevel) -> Cluster:
    count = levels[-1].group
    return Cluster(name="made", types=(DEVICE,), devices=("fast",) * count, levels=levels)


def formula(sharding: str = "none", **changes: object) -> Formula:
    step = msgspec.structs.replace(step_costs(FRAMEWORK, on(LEVEL), "fp32", "adam"), **changes)
    regime = Regime(
        mode="sync", precision="bf16", gradient_precision="fp32", optimizer="adam", step=step,
        optimizer_sharding=sharding,  # type: ignore[arg-type]
    )  # fmt: skip
    return Formula(regime, 8)


def test_the_optimizer_moves_its_bytes_at_the_rate_of_a_stream() -> None:
    """10^9 elements: 26 bytes each, and four passes over gradients of 4 bytes."""
    seconds = 1e9 * (26 + 4 * 4) / (USUAL_REACH.stream_share * 1e12)
    assert formula().update_ns(0, 2 * 10**9) == round(seconds * 1e9)
    assert step_costs(FRAMEWORK, on(LEVEL), "bf16", "none").optimizer_s_per_element == 0.0


def test_zero1_shares_the_optimizer_and_not_the_gradients() -> None:
    seconds = 1e9 * (26 / 4 + 4 * 4) / (USUAL_REACH.stream_share * 1e12)
    assert formula("zero1").update_ns(0, 2 * 10**9, 4) == round(seconds * 1e9)


def test_a_share_of_the_all_reduce_is_hidden() -> None:
    costs = formula(optimizer_s_per_element=0.0, gradient_s_per_element=0.0)
    assert costs.update_ns(1_000_000, 2 * 10**9, 4) == 750_000


def test_gradients_are_reduced_at_their_own_precision() -> None:
    """fp32 gradients of bf16 weights: twice the bytes of the weights."""
    twice = Formula.all_reduce_ns(LEVEL, 2 * 10**6, 4)
    assert formula().reduce_ns(Ring(LEVEL, LEVEL), 10**6, 4) == twice


def test_async_has_no_step() -> None:
    costs = formula()
    flushless = Formula(msgspec.structs.replace(costs.regime, mode="async"), 8)
    assert flushless.update_ns(5, 2 * 10**9, 4) == 5


@pytest.mark.parametrize(("rings", "rate"), [(1, 100e9), (2, 50e9), (4, 25e9), (8, 12.5e9), (16, 12.5e9)])
def test_a_collective_leaves_a_node_over_the_links_of_its_members(rings: int, rate: float) -> None:
    """8 cards of 12.5 GB/s: all of them for one ring of 8 members a node, one for each of 8 rings."""
    assert ring_level(on(*NODES), 0, 63, rings, spread=True).bandwidth_bytes_s == rate
    assert ring_level(on(*NODES), 0, 63, rings).bandwidth_bytes_s == 12.5e9
    assert ring_level(on(*NODES), 0, 7, rings, spread=True).bandwidth_bytes_s == 200e9


def two_stages(splits: bool) -> tuple[Problem, Plan]:
    problem = chain_problem([5, 5], [5, 5], cluster(4), activations=[0, 1000, 0], mini_batch=4)
    step = StepCosts(framework="one", optimizer_s_per_element=0.0, splits_messages=splits)
    names = [operator.name for operator in problem.profile.graph.operators]
    stages = tuple(
        Stage(operators=(name,), devices=(2 * k, 2 * k + 1), tensor_parallel=2, micro_batch=4)
        for k, name in enumerate(names)
    )
    regime = msgspec.structs.replace(problem.regime, step=step)
    return msgspec.structs.replace(problem, regime=regime), Plan(stages=stages)


def test_tensor_parallel_ranks_send_a_share_each_where_the_framework_does() -> None:
    times = []
    for splits in (False, True):
        problem, plan = two_stages(splits)
        model = CostModel(problem)
        (message,) = model.messages(plan)
        times.append(model.message_ns(plan, message))
    level = cluster(4).levels[-1]
    latency_ns = round(level.latency_s * 1e9)
    assert times[0] > latency_ns
    assert times[1] - latency_ns == pytest.approx((times[0] - latency_ns) / 2, abs=1)


def test_a_device_without_a_memory_bandwidth_is_refused() -> None:
    blind = msgspec.structs.replace(on(LEVEL), types=(DeviceType(name="fast", memory_bytes=1),))
    with pytest.raises(PipebenchError, match="memory bandwidth"):
        step_costs(FRAMEWORK, blind, "fp32", "adam")


def test_gradients_of_split_operators_are_reduced_at_their_own_precision() -> None:
    """Weights of 1,000 bytes on both devices of a stage, samples split: a ring of two in 16 and in 32 bits."""
    times = []
    for step in (None, StepCosts(framework="one", optimizer_s_per_element=0.0)):
        problem = chain_problem([5], [5], cluster(2), weights=[1000], mode="sync", mini_batch=2)
        profile = msgspec.structs.replace(problem.profile, precision="bf16")
        regime = Regime(mode="sync", precision="bf16", gradient_precision="fp32", step=step)
        name = profile.graph.operators[0].name
        stage = Stage(
            operators=(name,), devices=(0, 1), tensor_parallel=2, micro_batch=2, sharding=({"batch": 2},)
        )
        model = CostModel(msgspec.structs.replace(problem, profile=profile, regime=regime))
        times.append(model.all_reduce_ns(stage))
    assert times[1] == 2 * times[0] > 0
