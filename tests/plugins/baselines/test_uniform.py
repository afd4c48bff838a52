"""uniform: equal stages, run in sequence."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.chains.level_cuts import layer_groups
from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench_baselines.even_stages import equal_cuts, uniform
from tests.builders import cluster, dag_problem
from tests.plugins.running import context, scheduled, time_ns

BRANCHES = [(0, (2,), 4), (1, (3,), 4), (2, (4,), 4), (3, (5,), 4), (4, (6,), 4), (5, (6,), 4)]


def branches(mode: RegimeMode, devices: int = 3, memory: int = 10**9, **pins: object) -> Problem:
    """0-2-4 and 1-3-5 meet in 6; listed level by level."""
    return dag_problem(
        [5, 4, 3, 4, 5, 6, 7],
        [9, 8, 7, 8, 9, 8, 7],
        BRANCHES,
        cluster(devices, memory),
        weights=[10] * 7,
        saved=[2] * 7,
        mode=mode,
        mini_batch=8,
        micro_batches=(1,) if mode == "sync" else (2,),
        pins=Pins(**pins),  # type: ignore[arg-type]
    )


def with_layers(graph: OperatorGraph, layers: list[int | None]) -> OperatorGraph:
    operators = (
        msgspec.structs.replace(op, layer=layer) for op, layer in zip(graph.operators, layers, strict=True)
    )
    return msgspec.structs.replace(graph, operators=tuple(operators))


@given(st.integers(1, 200), st.data())
def test_parts_differ_by_at_most_one(items: int, data: st.DataObject) -> None:
    parts = data.draw(st.integers(1, items))
    sizes = [b - a for a, b in pairwise(equal_cuts(items, parts))]
    assert sum(sizes) == items
    assert len(sizes) == parts
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1


def test_operators_without_layers_stand_alone() -> None:
    graph = branches("sync").profile.graph
    assert layer_groups(graph) == tuple((operator,) for operator in range(7))


def test_named_layers_stay_whole_and_others_join_a_neighbour() -> None:
    graph = with_layers(branches("sync").profile.graph, [None, None, 1, 1, 2, 2, None])
    assert layer_groups(graph) == ((0, 1, 2, 3), (4, 5, 6))


def test_layers_that_data_run_against_are_ignored() -> None:
    graph = with_layers(branches("sync").profile.graph, [2, 1, 1, 1, 2, 2, 3])
    assert len(layer_groups(graph)) == 7


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(
    ("devices", "pins", "stages"),
    [
        (3, {}, 3),
        (9, {}, 7),
        (4, {"pipeline": 2}, 2),
        (6, {"data_parallel": 2}, 3),
        (6, {"data_parallel": 2, "pipeline": 2}, 2),
        (3, {"recompute": "stage"}, 3),
    ],
)
def test_stages_are_equal_valid_and_as_pinned(
    devices: int, pins: dict[str, object], stages: int, mode: RegimeMode
) -> None:
    problem = branches(mode, devices, **pins)
    plan = uniform(problem, context()).plan
    sizes = [len(stage.operators) for stage in plan.stages]
    assert len(sizes) == stages
    assert max(sizes) - min(sizes) <= 1
    assert check_plan(problem, plan).status == "valid"
    assert check_pins(problem, plan).status == "valid"
    assert check_schedule(problem, plan, scheduled(problem, plan)).status == "valid"


@pytest.mark.parametrize(
    ("devices", "pins", "replicas"),
    [
        (8, {"pipeline": 2}, 4),
        (8, {"pipeline": 3}, 2),
        (12, {"pipeline": 1}, 8),
        (8, {"pipeline": 2, "data_parallel": 1}, 1),
    ],
)
def test_where_stages_are_pinned_replicas_fill_the_devices(
    devices: int, pins: dict[str, int], replicas: int
) -> None:
    """As Megatron-LM does with the degrees it is given; a mini-batch has eight samples at most to share out."""
    problem = branches("sync", devices, **pins)
    assert problem.mini_batch == 8
    plan = uniform(problem, context()).plan
    assert {stage.data_parallel for stage in plan.stages} == {replicas}
    assert check_pins(problem, plan).status == "valid"


def test_sync_runs_stages_in_sequence_and_async_relays() -> None:
    plan = uniform(branches("sync"), context()).plan
    assert plan.order_edges == ((0, 1), (1, 2))
    assert uniform(branches("async", 7), context()).plan.routing == "relay"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_the_micro_batch_is_the_best_of_all(mode: RegimeMode) -> None:
    problem = branches(mode)
    sizes = (1, 2, 4, 8) if mode == "sync" else (2,)
    times = [
        time_ns(problem, uniform(msgspec.structs.replace(problem, pins=Pins(micro_batch=size)), context()).plan)
        for size in sizes
    ]
    assert time_ns(problem, uniform(problem, context()).plan) == min(times)


def test_memory_rules_out_large_micro_batches() -> None:
    # The same time at every size: one micro-batch of 8 is best. Two operators a stage, each saves 5 a sample.
    tensors = [(0, (1,), 1), (1, (2,), 1), (2, (3,), 1)]
    chosen = []
    for memory in (1000, 2 * 20 + 8 * 10 + 8 * 2, 2 * 20 + 8 * 10 + 8 * 2 - 1):
        problem = dag_problem(
            [5] * 4,
            [9] * 4,
            tensors,
            cluster(2, memory),
            weights=[10] * 4,
            saved=[5] * 4,
            mini_batch=8,
            micro_batches=(1, 2, 4, 8),
        )
        chosen.append(uniform(problem, context()).plan.stages[0].micro_batch)
    assert chosen[:2] == [8, 8]
    assert chosen[2] < 8


@pytest.mark.parametrize("pins", [{"tensor_parallel": 2}, {"virtual_stages": 2}])
def test_pins_that_it_cannot_express_are_refused(pins: dict[str, object]) -> None:
    with pytest.raises(UnsupportedProblem, match="2"):
        uniform(branches("sync", 4, **pins), context())


def test_infeasible_problems_say_what_is_missing() -> None:
    with pytest.raises(InfeasibleProblem, match="8 stages"):
        uniform(branches("sync", 9, pipeline=8), context())
    with pytest.raises(InfeasibleProblem, match="3 devices"):
        uniform(branches("sync", 3, pipeline=2, data_parallel=2), context())
    with pytest.raises(InfeasibleProblem, match="4 replicas"):
        uniform(branches("sync", 4, data_parallel=4, micro_batch=2), context())
    with pytest.raises(InfeasibleProblem, match="bytes on one device"):
        uniform(branches("sync", memory=30), context())
