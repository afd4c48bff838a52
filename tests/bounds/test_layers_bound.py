"""The bound from layers: operators that are alike, as wholes on groups of devices."""

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bench.score import judge
from pipebench.bounds import time_bound
from pipebench.bounds.by_group.layer_tables import MOST_COUNTS, LayerTables, layer_group
from pipebench.bounds.by_group.layers import LayersProof, layers_proof
from pipebench.bounds.choices import COMPUTE
from pipebench.bounds.shared import shared
from pipebench.domain.errors import InfeasibleProblem, PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, Regime, RegimeMode
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.drawn_problems import with_alternatives
from tests.builders import chain_problem, cluster, dag_problem, mirrored_plan
from tests.nightly import examples
from tests.plugins.running import services
from tests.plugins.search.tiny import NS, all_plans, with_memory

ALONE = Pins(data_parallel=1)


def proof_of(problem: Problem, time_ns: int = 1) -> LayersProof | None:
    """The proof of the largest time that is found."""
    found = shared(problem)
    return None if found is None else layers_proof(problem, found, time_ns)


def layers_ns(problem: Problem) -> int:
    found = proof_of(problem)
    assert found is not None
    return found.claimed_ns


def layers(count: int, devices: int, memory: int = 10**15, **given: object) -> Problem:
    """A chain of equal operators of 2 and 4 ns a sample with 10 bytes of weights, of which each saves 3 bytes."""
    numbers = {"weights": [10] * count, "saved": [3] * count, "mode": "sync", **given}
    on = cluster(devices, memory=memory)
    return chain_problem([2] * count, [4] * count, on, **numbers)  # type: ignore[arg-type]


@pytest.mark.parametrize(("count", "devices", "each"), [(12, 5, 3), (12, 4, 3), (13, 4, 4), (50, 7, 8)])
def test_a_device_runs_whole_layers(count: int, devices: int, each: int) -> None:
    """One micro-batch of one sample: the fullest device has so many layers of 6 ns."""
    problem = layers(count, devices, mini_batch=1, pins=ALONE)
    assert layers_ns(problem) == pytest.approx(6 * each, rel=2e-3, abs=1)
    whole = time_bound(replace(problem, regime=Regime(mode="async")))
    expected = "layers" if count % devices else "work"
    assert (whole.kind, whole.ns) == (expected, 6 * each)


@pytest.mark.parametrize(("bytes_short", "expected"), [(0, 24), (1, None)])
def test_memory_says_how_many_layers_a_device_holds(bytes_short: int, expected: int | None) -> None:
    """20 bytes of state and 3 saved: of 13 layers on four devices one has four, if it holds them."""
    found = proof_of(layers(13, 4, 4 * 23 - bytes_short, mini_batch=1, pins=ALONE))
    assert (found and found.claimed_ns) == expected


@pytest.mark.parametrize(("memory", "expected"), [(10**15, 168), (84, 168), (83, None)])
def test_replicas_share_samples(memory: int, expected: int | None) -> None:
    """One micro-batch of eight samples, ten layers on three devices. One device takes 48 ns a layer, two of them
    24 ns, and three, of which one has three samples, 18 ns. In less than 168 ns none of these groups holds more
    than three layers for each device. A layer saves 24, 12 or 9 bytes on a device: with 83 of them likewise.
    """
    found = proof_of(layers(10, 3, memory, mini_batch=8, weights=[0] * 10, pins=Pins(micro_batch=8)))
    assert (found and found.claimed_ns) == expected


@pytest.mark.parametrize(("memory", "expected"), [(10**15, 78), (13 * 20, 78), (13 * 20 - 1, 84)])
def test_replicas_have_the_state_each(memory: int, expected: int) -> None:
    """Two devices for thirteen layers of 20 bytes and two samples: replicas take 6 ns a layer, where each holds
    all of them. Else one device holds seven, of 12 ns.
    """
    assert layers_ns(fast_links(layers(13, 2, memory, mini_batch=2, saved=[0] * 13))) == expected


def test_two_kinds_of_layers_share_a_device() -> None:
    """Six operators of 6 ns and six of 10 ns on three devices: 32 ns each. With one of 9 ns more the mean is 35
    ns, and two of three devices run an even number of ns.
    """
    for last, expected in (([], 32), ([9], 36)):
        ns = [6] * 6 + [10] * 6 + last
        problem = chain_problem(
            [each // 3 for each in ns], [each - each // 3 for each in ns], cluster(3), mode="sync", pins=ALONE,
            weights=[1000] * len(ns),
        )  # fmt: skip
        assert layers_ns(problem) == expected


def test_several_pipelines_hold_parts_of_layers() -> None:
    """Three layers on two devices, two samples: one pipeline takes 24 ns. Two of them, with one sample each, share
    the devices evenly: 18 ns.
    """
    problem = layers(3, 2, mini_batch=2, weights=[0] * 3)
    assert layers_ns(replace(problem, pins=ALONE)) == 24
    assert layers_ns(problem) == 18


def fast_links(problem: Problem) -> Problem:
    levels = tuple(replace(level, bandwidth_bytes_s=1e12) for level in problem.cluster.levels)
    return replace(problem, cluster=replace(problem.cluster, levels=levels))


@pytest.mark.parametrize(("memory", "expected"), [(66, 18), (65, 18), (64, 24)])
def test_pipelines_on_the_same_devices_hold_state_each(memory: int, expected: int) -> None:
    """As above, with 20 bytes of state. Both devices hold three layers, 60 bytes; at the two instants together
    9 bytes are saved, so 64 bytes are too few.
    """
    problem = fast_links(layers(3, 2, memory, mini_batch=2))
    assert layers_ns(replace(problem, pins=Pins(micro_batch=1))) == expected


def test_copies_with_a_pinned_micro_batch_run_it_each() -> None:
    """Two layers on four devices; a run of a sample takes 6 ns, of two samples 20 ns. Two copies of two replicas
    run two micro-batches of a sample on each; four replicas in turn run one of two samples.
    """
    pins = Pins(micro_batch=2, data_parallel=4)
    problem = layers(2, 4, mini_batch=8, weights=[0] * 2, pins=pins, mode="async")
    (costs,) = problem.profile.costs
    slow = tuple(replace(o, forward_s=(2e-9, 10e-9), backward_s=(4e-9, 10e-9)) for o in costs.operators)
    costs = replace(costs, micro_batches=(1, 2), operators=slow)
    assert layers_ns(replace(problem, profile=replace(problem.profile, costs=(costs,)))) == 24


def test_weights_that_all_layers_share_count_once() -> None:
    """Of twelve layers with the same 20 bytes of state four devices hold three each, in 40 bytes."""
    problem = layers(12, 4, 40, mini_batch=1, pins=ALONE)
    graph = problem.profile.graph
    shared_by_all = tuple(replace(each, parameters=graph.operators[0].parameters) for each in graph.operators)
    tied = replace(graph, operators=shared_by_all, parameters=graph.parameters[:1])
    assert layers_ns(replace(problem, profile=replace(problem.profile, graph=tied))) == 18


@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=12),
)
@example(2, [(10, 5, 0), (12, 3, 3)])
def test_rows_that_are_left_out_are_least_at_no_price(pipelines: int, rows: list[tuple[int, int, int]]) -> None:
    def cost(row: tuple[int, int, int], price: tuple[int, int]) -> int:
        ns, state, saved = row
        return price[0] * ns + price[1] * (pipelines * state + saved)

    group = layer_group(pipelines, 1, 1, [[np.array(rows, np.int64).reshape(-1, 3)]])
    (kept,) = group.rows
    assert set(kept) <= set(rows)
    assert bool(kept) == bool(rows)
    for price in product(range(8), repeat=2) if rows else ():
        assert min(cost(row, price) for row in kept) == min(cost(row, price) for row in rows)
    for between in set(group.prices) - {(1, 0), (0, 1)}:
        costs = sorted(cost(row, between) for row in kept)
        assert costs[0] == costs[1]  # two rows are least there


@st.composite
def alike(draw: st.DrawFn) -> Problem:
    """Operators of one or two kinds, in a row or behind one of them."""
    count = draw(st.integers(2, 4))
    kinds = draw(st.sampled_from([[0] * count, [0] + [1] * (count - 1), [at % 2 for at in range(count)]]))

    def numbers(least: int, most: int) -> list[int]:
        two = draw(st.integers(least, most)), draw(st.integers(least, most))
        return [two[kind] for kind in kinds]

    row, devices = draw(st.booleans()), draw(st.integers(1, 3))
    problem = dag_problem(
        numbers(0, 20), numbers(1, 30), [(at if row else 0, (at + 1,), 1) for at in range(count - 1)],
        cluster(devices), weights=numbers(0, 12), saved=numbers(0, 12),
        mode=draw(st.sampled_from(["sync", "async"])), mini_batch=draw(st.sampled_from([2, 4])),
        micro_batches=(1, 2, 4),
    )  # fmt: skip
    if draw(st.booleans()):
        problem = with_alternatives(problem, draw(st.integers(0, 20)), draw(st.integers(1, 2)), count)
    regime = Regime(
        mode=problem.regime.mode,
        optimizer=draw(st.sampled_from(["none", "adam"])),
        optimizer_sharding=draw(st.sampled_from(["none", "zero1", "zero3"])),
    )
    two = [Pins(data_parallel=2)] if devices > 1 else []
    pins = draw(st.sampled_from([Pins(), Pins(), ALONE, Pins(micro_batch=2), *two]))
    overlap = draw(st.sampled_from([0.0, 0.0, 0.5])) if regime.mode == "sync" else 0.0
    return replace(problem, regime=regime, pins=pins, overlap=overlap)


def drawn_plans(problem: Problem, random: Random) -> Iterator[Plan]:
    """Some on shared and other devices, with replicas, copies and in two directions."""
    every = list(all_plans(problem))
    yield from random.sample(every, min(10, len(every)))
    count = len(problem.profile.graph.operators)
    if problem.regime.mode == "sync" and problem.cluster.size > 1:
        for cut in range(1, count):
            yield mirrored_plan([list(range(cut)), list(range(cut, count))])


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(alike(), st.randoms(use_true_random=False))
def test_no_plan_that_just_fits_is_below_the_bound(problem: Problem, random: Random) -> None:
    for plan in drawn_plans(problem, random):
        for scheduler in ("1f1b*", "1f1b-rr", "1f1b", "periodic-bnb", "greedy", "chimera"):
            try:
                schedule = services().schedule(scheduler, problem, plan)
                trace = simulate(problem, plan, schedule)
            except PipebenchError:
                continue
            verdict = judge(problem, plan, schedule)
            if verdict.status == "valid":
                fitting = with_memory(problem, max(1, *verdict.peak_bytes.values()))
                if judge(fitting, plan, schedule).status != "valid":
                    continue
                taken = round(metrics(fitting, plan, trace).seconds * NS)
                proof = proof_of(fitting)
                assert proof is None or proof.claimed_ns <= taken, (scheduler, plan)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_pinned_micro_batch_is_one_of_each_copy(mode: RegimeMode) -> None:
    """Two copies of one device each run two micro-batches of two samples: 24 ns. One of both would be of four."""
    problem = layers(2, 2, mini_batch=8, mode=mode, weights=[0] * 2, pins=Pins(micro_batch=2, data_parallel=2))
    assert layers_ns(problem) <= 48
    assert layers_ns(problem) == pytest.approx(48, rel=2e-3)


def test_in_a_pattern_copies_share_micro_batches_in_one_stage_and_take_turns_in_the_next() -> None:
    """Two copies of micro-batches of two: replicas share one (50 ns) or run them in turn (100 ns), all in 100 ns.

    In one copy of twice the size the first stage would be alike, and the second would run four samples at a time.
    """
    problem = chain_problem([0] * 11, [0] * 11, cluster(8), mini_batch=4, mode="async")
    (costs,) = problem.profile.costs
    of_sizes = {"op0": (50, 200, 800), "op1": (100, 100, 800)}
    same = []
    for each in costs.operators:
        ns = of_sizes.get(each.operator, (0, 0, 0))
        times = tuple(one / NS for one in ns)
        same.append(replace(each, forward_s=times, backward_s=times))
    costs = replace(costs, micro_batches=(1, 2, 4), operators=tuple(same))
    problem = replace(problem, profile=replace(problem.profile, costs=(costs,)))
    names = tuple(each.operator for each in same)
    stages = (
        Stage(operators=names[:1], devices=(0, 1), data_parallel=2, micro_batch=2),
        Stage(operators=names[1:], devices=(2, 3), data_parallel=2, micro_batch=2, replicas="round_robin"),
    )
    plan = Plan(stages=stages, copies=2)
    schedule = services().schedule("1f1b-rr", problem, plan)
    assert judge(problem, plan, schedule).status == "valid"
    taken = round(metrics(problem, plan, simulate(problem, plan, schedule)).seconds * NS)
    assert (taken, time_bound(problem).ns) == (100, 100)


def test_operators_that_differ_are_no_class() -> None:
    """With one class of many, and many of one operator each that have little work, the many count alone."""
    each = [2] * 20 + list(range(1, 13))
    problem = chain_problem([100 * at for at in each[:20]] + each[20:], each, cluster(3), mode="sync", pins=ALONE)
    found = shared(problem)
    assert found is not None
    tables = LayerTables(problem, found.choices.least(COMPUTE))
    assert len(tables.classes[-1]) == 20
    counts = 1
    for alone in tables.classes[:-1]:
        counts *= len(alone) + 1
    assert counts <= MOST_COUNTS
    different = chain_problem(list(range(1, 30)), list(range(1, 30)), cluster(3), mode="sync", pins=ALONE)
    assert proof_of(different) is None


def test_devices_of_two_types_have_none() -> None:
    problem = layers(12, 4)
    on = problem.cluster
    other = replace(on.types[0], name="other")
    mixed = replace(on, types=(on.types[0], other), devices=(*on.devices[:2], "other", "other"))
    costs = problem.profile.costs[0]
    profile = replace(problem.profile, costs=(costs, replace(costs, device_type="other")))
    assert proof_of(replace(problem, cluster=mixed, profile=profile)) is None


def test_where_samples_can_be_cut_in_too_many_ways_there_is_none() -> None:
    """720,720 has 240 divisors, 14 of them up to 16."""
    many, few = (layers(12, 16, mini_batch=samples, pins=ALONE) for samples in (720_720, 1))
    assert proof_of(many) is None
    assert proof_of(few) is not None


def test_operators_that_need_no_input_are_none() -> None:
    problem = layers(12, 4)
    graph = problem.profile.graph
    constant = tuple(replace(operator, constant=True) for operator in graph.operators)
    changed = replace(problem, profile=replace(problem.profile, graph=replace(graph, operators=constant)))
    assert proof_of(changed) is None


def test_where_no_plan_fits_nothing_is_said() -> None:
    problem = layers(12, 2, memory=25, pins=ALONE)
    try:
        found = proof_of(problem)
    except InfeasibleProblem:
        return
    assert found is None
