"""The exact contiguous optimum: published oracles, enumeration, MadPipe's own recursion, scaling."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.chain import Chain, build_chain
from pipebench.algorithms.chains.contiguous import (
    Search,
    StageRange,
    contiguous_optimum,
    decide,
    least_memory,
    longest_period,
    partition_at,
    shortest_period,
)
from pipebench.algorithms.graph_orders import linearise
from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from tests.algorithms.enumeration import (
    Figures,
    algorithm_1,
    all_bounds,
    best_period,
    figures,
    fits,
    items_of,
    partition_period,
)
from tests.algorithms.oracles import ORACLES
from tests.algorithms.strategies import chains, dags
from tests.builders import chain_problem, cluster


def chain_of(problem: Problem, recompute: str = "none") -> Chain:
    layers = linearise(problem.profile.graph)
    return build_chain(CostModel(problem), layers, problem.mini_batch, recompute)  # type: ignore[arg-type]


def optimum(problem: Problem, **limits: int) -> Search:
    stages = StageRange(1, problem.cluster.size)
    return contiguous_optimum(chain_of(problem), stages, problem.cluster.memory_bytes, **limits)  # type: ignore[arg-type]


def period(problem: Problem) -> float:
    """The optimum in ns, inf when nothing fits."""
    best = optimum(problem).best
    return float("inf") if best is None else best.period_ns


def figures_of(problem: Problem) -> Figures:
    """A problem of strategies.chains in MadPipe's notation."""
    profile = problem.profile
    costs = profile.costs[0].operators
    saved = [int(c.saved_bytes_per_sample) for c in costs]
    held = [saved[0], *(int(t.forward_bytes_per_sample) for t in profile.graph.tensors), 0]
    sizes = profile.graph.parameter_bytes
    return figures(
        [round(c.forward_s[0] * 1e9) for c in costs],
        [round(c.backward_s[0] * 1e9) for c in costs],
        [sizes.get(f"w{i}", 0) for i in range(len(costs))],
        held,
        [Formula.message_ns(problem.cluster.levels[0], size, 1, 1) for size in held],
    )


@pytest.mark.parametrize("name", ORACLES)
def test_published_oracles(name: str) -> None:
    oracle = ORACLES[name]
    found = optimum(oracle.problem)
    assert found.best is not None
    assert found.best.period_ns == found.lower_ns == oracle.contiguous
    assert best_period(oracle.figures, oracle.devices, oracle.memory) == oracle.contiguous
    assert list(oracle.figures.cut) == [2 * c for c in oracle.one_way]
    assert chain_of(oracle.problem).arrays.cut_ns[0, 1:-1].tolist() == list(oracle.figures.cut[1:-1])


@settings(max_examples=250)
@given(chains(most_layers=8))
def test_equals_the_enumeration_of_all_partitions(problem: Problem) -> None:
    chain, memory = figures_of(problem), problem.cluster.memory_bytes
    found = optimum(problem)
    assert (found.best and found.best.period_ns) == best_period(chain, problem.cluster.size, memory)
    if found.best is not None:
        assert partition_period(chain, found.best.bounds, memory) == found.best.period_ns
        assert chain_of(problem).items(found.best.bounds).tolist() == items_of(chain, found.best.bounds)
        fewer = [b for b in all_bounds(chain.length, len(found.best.bounds) - 2) if len(b) > 1]
        assert not any(partition_period(chain, b, memory) == found.best.period_ns for b in fewer)


@settings(max_examples=150)
@given(chains(least_time=1))
def test_equals_madpipes_recursion_and_algorithm_1_on_normal_processors(problem: Problem) -> None:
    chain = figures_of(problem)
    assert algorithm_1(chain, problem.cluster.size, problem.cluster.memory_bytes) == period(problem)


@given(dags(), st.integers(30, 400), st.sampled_from(["none", "stage"]), st.integers(1, 4))
def test_shared_weights_levels_recomputation_and_pinned_degree(
    problem: Problem, memory: int, recompute: str, least: int
) -> None:
    chain = chain_of(problem, recompute)
    for stages in (StageRange(1, 4), StageRange(least, least)):
        found = contiguous_optimum(chain, stages, memory)
        candidates = [b for b in all_bounds(chain.length, stages.most) if len(b) > stages.least]
        periods = [p.period_ns for b in candidates if (p := partition_at(chain, b, memory)) is not None]
        assert (found.best and found.best.period_ns) == min(periods, default=None)
        assert found.best is None or stages.least <= len(found.best.bounds) - 1 <= stages.most
        if candidates:
            holding = [[chain.memory(a, b).peak(1) for a, b in pairwise(c)] for c in candidates]
            assert least_memory(chain, stages) == min(map(max, holding))


@given(chains(), st.integers(1, 100), st.integers(0, 30), st.integers(0, 30))
def test_feasibility_is_monotone_in_period_and_memory(problem: Problem, at: int, longer: int, more: int) -> None:
    chain, memory = chain_of(problem), problem.cluster.memory_bytes

    def feasible(period: int, memory: int) -> bool:
        return decide(chain.arrays, period, 1, problem.cluster.size, memory, False)[0] > 0

    if feasible(at, memory):
        assert feasible(at + longer, memory)
        assert feasible(at, memory + more)
    each = [
        b
        for b in all_bounds(chain.length, problem.cluster.size)
        if max(items_of(figures_of(problem), b)) <= at and fits(figures_of(problem), b, at, memory)
    ]
    assert feasible(at, memory) == bool(each)


@given(chains(least_time=1), st.integers(2, 5))
def test_all_times_scaled_scale_the_period(problem: Problem, factor: int) -> None:
    costs = problem.profile.costs[0]
    slower = tuple(
        msgspec.structs.replace(c, forward_s=(c.forward_s[0] * factor,), backward_s=(c.backward_s[0] * factor,))
        for c in costs.operators
    )
    profile = msgspec.structs.replace(problem.profile, costs=(msgspec.structs.replace(costs, operators=slower),))
    # A whole number of ns a byte, so that transfers scale without rounding.
    scaled = with_level(msgspec.structs.replace(problem, profile=profile), bandwidth_bytes_s=1e9 / factor)
    assert period(scaled) == factor * period(with_level(problem, bandwidth_bytes_s=1e9))


def with_level(problem: Problem, **changes: float) -> Problem:
    level = msgspec.structs.replace(problem.cluster.levels[0], **changes)
    return msgspec.structs.replace(problem, cluster=msgspec.structs.replace(problem.cluster, levels=(level,)))


@given(st.lists(st.integers(0, 12), min_size=18, max_size=18), st.integers(20, 120), st.integers(2, 6))
def test_all_sizes_and_memory_scaled_leave_the_period(numbers: list[int], memory: int, factor: int) -> None:
    def at(scale: int) -> Problem:
        return chain_problem(
            numbers[:4],
            numbers[4:8],
            cluster(3, memory * scale, 1e9 * scale),
            activations=[scale * a for a in numbers[8:13]],
            weights=[scale * w for w in numbers[13:17]],
        )

    assert period(at(1)) == period(at(factor))


@given(chains(), st.integers(0, 40), st.sampled_from([1.0, 2.0, 10.0]), st.integers(0, 3))
def test_more_memory_bandwidth_or_devices_never_hurt(
    problem: Problem, memory: int, faster: float, devices: int
) -> None:
    old = problem.cluster
    richer = cluster(old.size + devices, old.memory_bytes + memory, old.levels[0].bandwidth_bytes_s * faster)
    assert period(msgspec.structs.replace(problem, cluster=richer)) <= period(problem)


@given(chains(), st.integers(-3, 3))
def test_a_cutoff_only_hides_what_is_not_below_it(problem: Problem, offset: int) -> None:
    best = optimum(problem).best
    below = max(1, (best.period_ns if best else longest_period(chain_of(problem))) + offset)
    found = optimum(problem, below_ns=below)
    if best is not None and best.period_ns < below:
        assert found.best is not None
        assert found.best.period_ns == found.lower_ns == best.period_ns
    else:
        assert found.best is None
        assert found.lower_ns >= below


@given(chains(), st.integers(0, 8))
def test_a_stopped_search_keeps_its_best_and_a_true_bound(problem: Problem, probes: int) -> None:
    left = iter([False] * probes)
    chain, stages = chain_of(problem), StageRange(1, problem.cluster.size)
    found = contiguous_optimum(chain, stages, problem.cluster.memory_bytes, stop=lambda: next(left, True))
    assert found.probes <= probes
    assert shortest_period(chain, stages) <= found.lower_ns
    assert found.lower_ns <= period(problem)
    if found.best is not None:
        assert found.best.period_ns >= period(problem)


@pytest.mark.parametrize("devices", [2, 3, 4, 5])
@pytest.mark.parametrize("transfer", [1, 4, 5])
def test_closed_forms_of_uniform_chains(devices: int, transfer: int) -> None:
    # One layer of u = 4 + 6 ns a device, c = 2 x transfer <= u; only the first layer saves anything (100 bytes
    # a micro-batch), so its memory alone sets the period: u with 2P - 1 live, u + c with P, all in a row with 1.
    u, c = 10, 2 * transfer

    def best(live: int) -> int | None:
        problem = chain_problem(
            [4] * devices,
            [6] * devices,
            cluster(devices, 100 * live + 2 * c),
            activations=[0, *[transfer] * (devices - 1), 0],
            saved=[100, *[0] * (devices - 1)],
        )
        stages = StageRange(devices, devices)
        found = contiguous_optimum(chain_of(problem), stages, problem.cluster.memory_bytes)
        return None if found.best is None else found.best.period_ns

    assert best(2 * devices - 1) == u
    assert best(devices) == u + c
    assert best(1) == devices * u + (devices - 1) * c
    assert best(0) is None
