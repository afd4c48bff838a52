"""Replicas that share out weights, gradients and the optimizer's state: closed forms, and an independent count."""

from math import ceil

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.costs.rings import Ring
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import OptimizerSharding, Problem, Regime
from tests.builders import chain_problem, cluster
from tests.costs.test_step import LEVEL, formula

FORWARD, BACKWARD = [100, 300], [200, 600]
WEIGHTS = [800, 400]
RING = Ring(LEVEL, LEVEL)
GATHERED, SCATTERED = 900, 900
"""Of 1,200 bytes over four replicas at a byte a nanosecond: each sends three quarters."""


def problem(sharding: OptimizerSharding, weights: list[int] = WEIGHTS, mode: str = "sync") -> Problem:
    made = chain_problem(FORWARD, BACKWARD, cluster(4), weights=weights, mini_batch=8)
    regime = Regime(mode=mode, optimizer="adam", optimizer_sharding=sharding)  # type: ignore[arg-type]
    return msgspec.structs.replace(made, regime=regime)


def stage(replicas: int, recompute: str = "none") -> Stage:
    return Stage(
        operators=("op0", "op1"),
        devices=tuple(range(replicas)),
        data_parallel=replicas,
        micro_batch=replicas,
        recompute=recompute,  # type: ignore[arg-type]
    )


def test_each_pass_takes_its_work_or_what_it_exchanges() -> None:
    """The forward gathers 900 ns and works 400; the backward gathers and scatters 1,800 and works 800."""
    times = CostModel(problem("zero3")).stage_times(stage(4))
    assert (times.forward, times.backward, times.all_reduce) == (GATHERED, GATHERED + SCATTERED, 0)
    light = CostModel(problem("zero3", [80, 40])).stage_times(stage(4))
    assert (light.forward, light.backward, light.all_reduce) == (sum(FORWARD), sum(BACKWARD), 0)


def test_recomputing_gathers_no_third_time() -> None:
    """Layers that run again in the backward do so with the weights that the backward gathers."""
    times = CostModel(problem("zero3", [600, 200])).stage_times(stage(4, "stage"))
    assert times.forward == 600  # gathered; the work is 400
    assert times.backward == sum(FORWARD) + sum(BACKWARD)  # 1,200: as long as gathering and scattering 600 each


def test_one_replica_exchanges_nothing() -> None:
    alone = [CostModel(problem(each)).stage_times(stage(1)) for each in ("none", "zero3")]  # type: ignore[arg-type]
    assert alone[0] == alone[1]
    held = [
        CostModel(problem(each)).stage_memory(Plan(stages=(stage(1),)), 0, [])  # type: ignore[arg-type]
        for each in ("none", "zero3")
    ]
    assert held[0] == held[1]


@pytest.mark.parametrize(("mode", "versions"), [("sync", 1), ("async", 2)])
def test_a_device_holds_its_share_and_what_is_gathered(mode: str, versions: int) -> None:
    """Weights, gradients, 8 bytes an element of 4. While a task runs: two operators' weights, one gradient."""
    model = CostModel(problem("zero3", mode=mode))
    memory = model.stage_memory(Plan(stages=(stage(4),)), 0, [])
    assert memory.held == (versions + 1 + 2) * sum(WEIGHTS) // 4
    assert memory.workspace == 3 * max(WEIGHTS)


def test_copies_and_pipelines_share_too() -> None:
    model = CostModel(problem("zero3"))
    one = Plan(stages=(stage(2),), copies=2)
    assert model.stage_memory(one, 0, []).held == 4 * sum(WEIGHTS) // 4
    assert model.stage_times(one.stages[0], one).forward == GATHERED


@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=6),
    st.integers(2, 6),
    st.sampled_from(["none", "zero1", "zero3"]),
)
def test_states_of_all_replicas(weights: list[int], replicas: int, sharding: OptimizerSharding) -> None:
    """On all devices together: each part once, or once for each replica."""
    costs = Formula(Regime(mode="sync", optimizer="sgd", optimizer_sharding=sharding), 8)
    total = 4 * sum(weights)
    shared = {"none": (0, 3), "zero1": (1, 2), "zero3": (3, 0)}[sharding]
    exact = shared[0] * total / replicas + shared[1] * total
    assert costs.state_bytes(total, replicas) == ceil(exact)


def test_a_step_of_zero1_scatters_gradients_and_gathers_weights() -> None:
    """Half a ring for 4 bytes of a gradient, half for 2 bytes of a weight."""
    halves = [Formula.all_reduce_ns(LEVEL, size, 4) // 2 for size in (2 * 10**6, 10**6)]
    assert formula("zero1").reduce_ns(RING, 10**6, 4) == sum(halves)


def test_a_step_of_zero3_reduces_in_its_micro_batches() -> None:
    costs = formula("zero3")
    assert costs.reduce_ns(RING, 10**6, 4) == 0
    weights, gradients = (Formula.all_reduce_ns(LEVEL, size, 4) // 2 for size in (10**6, 2 * 10**6))
    assert costs.exchange_ns(RING, 10**6, 4) == (weights, weights + gradients)
    alone, shared = formula().update_ns(0, 2 * 10**9), costs.update_ns(0, 2 * 10**9, 4)
    assert shared == pytest.approx(alone / 4, abs=1)


def test_rings_of_weights_leave_nodes_like_those_of_gradients() -> None:
    """Of 8 devices in two nodes the slower link counts."""
    made = problem("zero3")
    slow = LinkLevel(name="net", group=4, bandwidth_bytes_s=1e8)
    near = LinkLevel(name="node", group=2, bandwidth_bytes_s=1e9)
    split = msgspec.structs.replace(made.cluster, levels=(near, slow))
    model = CostModel(msgspec.structs.replace(made, cluster=split))
    assert model.stage_times(stage(4)).forward == 10 * GATHERED
