"""The planner: valid plans, the choice of micro-batch, pins, refusals, what it says besides."""

import random

import msgspec
import pytest

from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.domain.cluster import DeviceType
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Stage
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached
from pipebench_graphpipe.planner import plan
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.search import GraphPipeSearch
from tests.nightly import mostly_at_night
from tests.plugins.graphpipe.instances import pinned, problem_on, random_series_parallel, with_memory
from tests.plugins.running import context, scheduled, time_ns

BRIDGE = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (3, 5), (4, 5)]


def run(problem: Problem, **options: object) -> PlanResult:
    return plan(problem, context(GraphPipeOptions(**options)))  # type: ignore[arg-type]


def paper(problem: Problem, **options: object) -> PlanResult:
    return run(problem, variant="paper", **options)


def series_parallel(seed: int, operators: int = 12, memory: int = 10**6) -> Problem:
    rng = random.Random(seed)
    return problem_on(rng, operators, random_series_parallel(rng, operators), 4, memory)


@pytest.mark.parametrize("memory", [200, 300, 500, 10**6])
@pytest.mark.parametrize("seed", mostly_at_night(range(6), range(2)))
def test_plans_and_their_schedules_are_valid_and_within_memory(seed: int, memory: int) -> None:
    problem = series_parallel(seed, memory=memory)
    try:
        result = run(problem)
    except InfeasibleProblem:
        assert memory < 500
        return
    verdict = check_schedule(problem, result.plan, scheduled(problem, result.plan))
    assert (verdict.status, verdict.witness) == ("valid", None)
    # On consecutive devices in topological order; of stages that are free to come next, the one listed first.
    used = [device for stage in result.plan.stages for device in stage.devices]
    assert used == list(range(len(used)))
    graph, stages = problem.profile.graph, result.plan.stages
    done: set[str] = set()
    for at, stage in enumerate(stages):
        ready = [later for later in stages[at:] if _inputs(problem, later) <= done | set(later.operators)]
        first = {
            id(later): min(graph.topological.index(graph.index[o]) for o in later.operators) for later in ready
        }
        assert min(ready, key=lambda later: first[id(later)]) is stage
        done |= set(stage.operators)


def _inputs(problem: Problem, stage: Stage) -> set[str]:
    graph = problem.profile.graph
    return {graph.operators[p].name for name in stage.operators for p in graph.predecessors[graph.index[name]]}


@pytest.mark.parametrize("seed", mostly_at_night(range(6), range(2)))
def test_the_micro_batch_is_the_best_of_all(seed: int) -> None:
    problem = series_parallel(seed, memory=500)
    alone = {}
    for size in (1, 2, 4, 8):
        try:
            alone[size] = run(pinned(problem, micro_batch=size))
        except InfeasibleProblem:
            continue
    times = {size: time_ns(problem, result.plan) for size, result in alone.items()}
    assert time_ns(problem, run(problem).plan) == min(times.values())
    by_tps = paper(problem, objective="tps")
    alone_by_tps = []
    for size in alone:
        alone_by_tps.append(paper(pinned(problem, micro_batch=size)).claimed_native or 0)
    assert by_tps.claimed_native == min(alone_by_tps)


def test_the_objectives_differ() -> None:
    # No memory pressure, and operators that like large micro-batches: TPS takes the whole mini-batch.
    problems = [series_parallel(seed) for seed in range(6)]
    assert {paper(problem, objective="tps").plan.stages[0].micro_batch for problem in problems} == {8}
    assert min(paper(problem).plan.stages[0].micro_batch for problem in problems) < 8


@pytest.mark.parametrize("seed", mostly_at_night(range(8), range(3)))
def test_relaxed_targets_are_never_worse(seed: int) -> None:
    problem = series_parallel(seed)
    assert time_ns(problem, run(problem, targets=9).plan) <= time_ns(problem, run(problem, targets=1).plan)


def test_relaxed_targets_can_be_better() -> None:
    gains = [
        time_ns(problem, run(problem, targets=1, rivals=False).plan)
        / time_ns(problem, run(problem, targets=9, rivals=False).plan)
        for problem in map(series_parallel, range(8))
    ]
    assert max(gains) > 1.01


@pytest.mark.parametrize("seed", mostly_at_night(range(8), range(4)))
def test_partitions_of_nearly_the_smallest_bottleneck_compete_by_time(seed: int) -> None:
    problem = pinned(series_parallel(seed), micro_batch=2)
    options = {"targets": 1, "rivals": False}
    smallest, near = run(problem, near=0, **options), run(problem, near=0.3, **options)
    assert time_ns(problem, near.plan) <= time_ns(problem, smallest.plan)
    assert smallest.claimed_s is not None
    assert near.claimed_s is not None
    assert smallest.claimed_s <= near.claimed_s <= 1.3 * smallest.claimed_s + 1e-9


def test_partitions_of_nearly_the_smallest_bottleneck_can_be_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipebench_graphpipe.search.FEWEST_REPLICAS", ())
    problems = [pinned(series_parallel(seed), micro_batch=2) for seed in range(8)]
    gains = [
        time_ns(problem, run(problem, near=0, targets=1, rivals=False).plan)
        / time_ns(problem, run(problem, targets=1, rivals=False).plan)
        for problem in problems
    ]
    assert min(gains) >= 1
    assert max(gains) > 1.01


@pytest.mark.parametrize("objective", ["simulated", "tps"])
@pytest.mark.parametrize("seed", mostly_at_night(range(6), range(3)))
def test_sizes_are_left_out_only_where_they_cannot_win(seed: int, objective: str) -> None:
    problem = series_parallel(seed)
    called = context(GraphPipeOptions(variant="paper", objective=objective))  # type: ignore[arg-type]
    found = plan(problem, called)
    alone = [paper(pinned(problem, micro_batch=size), objective=objective) for size in (1, 2, 4, 8)]
    if objective == "tps":
        assert found.claimed_s == min(result.claimed_s or 0 for result in alone)
    else:
        assert time_ns(problem, found.plan) == min(time_ns(problem, result.plan) for result in alone)
    assert objective == "simulated" or called.counters["sizes_left_out"] >= 1


def test_all_devices_may_be_replicas_whatever_their_number() -> None:
    # One operator that all-reduces nothing: one stage on all devices, 4 samples each, is the best there is.
    problem = problem_on(random.Random(1), 1, [], 6, 10**6)
    problem = msgspec.structs.replace(problem, mini_batch=48)
    result = run(problem)
    assert [stage.data_parallel for stage in result.plan.stages] == [6]
    assert result.plan.stages[0].micro_batch == 48
    assert result.notices == ()


def test_it_works_without_other_components() -> None:
    problem = series_parallel(1)
    result = plan(problem, Context(options=GraphPipeOptions()))
    assert check_plan(problem, result.plan).status == "valid"


def test_the_claim_is_the_bottleneck_over_the_mini_batch() -> None:
    problem = series_parallel(1)
    called = context(GraphPipeOptions())
    result = plan(problem, called)
    assert result.claimed_unit == "s/sample"
    assert result.claimed_native is not None
    assert result.claimed_s == pytest.approx(result.claimed_native * problem.mini_batch)
    assert (result.termination, result.lower_bound_s) == ("heuristic", None)
    again = context(GraphPipeOptions())
    assert plan(problem, again) == result
    assert called.counters == again.counters
    assert called.counters["feasibility_calls"] >= 4
    assert min(called.counters.values()) > 0


@pytest.mark.parametrize(
    "pins",
    [
        {"micro_batch": 2},
        {"data_parallel": 2},
        {"data_parallel": 3, "micro_batch": 4},
        {"pipeline": 1},
        {"pipeline": 1, "data_parallel": 4},
        {"recompute": "stage"},
        {"recompute": "none", "tensor_parallel": 1, "virtual_stages": 1},
    ],
    ids=str,
)
def test_pins_are_honoured(pins: dict[str, object]) -> None:
    problem = pinned(series_parallel(3), **pins)
    result = run(problem)
    assert check_pins(problem, result.plan).status == "valid"
    assert check_schedule(problem, result.plan, scheduled(problem, result.plan)).status == "valid"


@pytest.mark.parametrize("seed", range(3))
def test_its_own_search_makes_one_stage_where_one_is_pinned(seed: int) -> None:
    """Without the other planners' plans, which honour the pin by themselves."""
    problem = series_parallel(seed)
    assert len(paper(problem).plan.stages) > 1
    for options in ({"variant": "paper"}, {"rivals": False}):
        assert len(run(pinned(problem, pipeline=1), **options).plan.stages) == 1


@pytest.mark.parametrize("pins", [{"tensor_parallel": 2}, {"virtual_stages": 2}, {"pipeline": 3}], ids=str)
def test_pins_that_it_cannot_express_are_refused(pins: dict[str, int]) -> None:
    with pytest.raises(UnsupportedProblem, match=str(next(iter(pins.values())))):
        run(pinned(series_parallel(3), **pins))


def test_async_and_mixed_devices_are_refused() -> None:
    problem = series_parallel(3)
    with pytest.raises(UnsupportedProblem, match="sync"):
        run(msgspec.structs.replace(problem, regime=Regime(mode="async")))
    kinds = (*problem.cluster.types, DeviceType(name="other", memory_bytes=10**6))
    mixed = msgspec.structs.replace(problem.cluster, types=kinds, devices=("gpu", "gpu", "other", "gpu"))
    costs = problem.profile.costs[0]
    profile = msgspec.structs.replace(
        problem.profile, costs=(costs, msgspec.structs.replace(costs, device_type="other"))
    )
    with pytest.raises(UnsupportedProblem, match="gpu, other"):
        run(msgspec.structs.replace(problem, cluster=mixed, profile=profile))


@pytest.mark.parametrize("pins", [{"data_parallel": 9}, {"data_parallel": 4, "micro_batch": 2}], ids=str)
def test_pins_that_nothing_meets_are_infeasible(pins: dict[str, int]) -> None:
    with pytest.raises(InfeasibleProblem, match="4 devices"):
        run(pinned(series_parallel(3), **pins))


@pytest.mark.parametrize("seed", range(4))
def test_an_infeasible_problem_names_a_memory_that_would_do(seed: int) -> None:
    problem = series_parallel(seed, memory=60)
    with pytest.raises(InfeasibleProblem, match="fit 60 bytes") as caught:
        run(problem)
    named = int(caught.value.message.split()[-4])
    assert run(with_memory(problem, named)).plan
    with pytest.raises(InfeasibleProblem):
        run(pinned(with_memory(problem, int(named * 0.98)), micro_batch=1), rivals=False)


def test_the_reserve_is_kept_where_possible_and_used_where_not() -> None:
    problem = series_parallel(2)
    need = next(memory for memory in range(100, 1000, 10) if _fits(with_memory(problem, memory)))
    roomy = with_memory(problem, round(need / 0.7) + 1)
    tight = check_schedule(
        pinned(roomy, reserve=0.5), _plan := run(pinned(roomy, reserve=0.5)).plan, scheduled(roomy, _plan)
    )
    kept = check_schedule(
        pinned(roomy, reserve=0.3), _plan := run(pinned(roomy, reserve=0.3)).plan, scheduled(roomy, _plan)
    )
    assert (kept.fit, tight.fit) == ("fits", "tight")


def _fits(problem: Problem) -> bool:
    try:
        plan(problem, Context(options=GraphPipeOptions()))
    except InfeasibleProblem:
        return False
    return True


def test_lines_and_idle_devices_are_said() -> None:
    problem = problem_on(random.Random(0), 6, BRIDGE, 4, 10**6)
    assert any("4 operators put in a line" in notice for notice in run(problem).notices)
    assert run(series_parallel(1)).notices == ()
    three = pinned(problem_on(random.Random(0), 6, BRIDGE, 4, 10**6), data_parallel=3, micro_batch=4)
    assert "uses 3 of 4 devices" in run(three).notices


def test_a_passed_deadline_stops_it_or_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = series_parallel(1)
    late = context(GraphPipeOptions())
    late.deadline_s = 0.0
    with pytest.raises(DeadlineReached):
        plan(problem, late)
    options = GraphPipeOptions(rivals=False)
    # The time runs out after the first micro-batch size, the one that promises most.
    first = next(iter(GraphPipeSearch(problem, options, context(options)).least_ns))
    asked = iter([False] * 4 + [True] * 1000)
    monkeypatch.setattr(Context, "out_of_time", lambda self: next(asked))
    result = plan(problem, context(options))
    assert result.termination == "limit"
    assert result.plan.stages[0].micro_batch == first
    assert check_plan(problem, result.plan).status == "valid"


def test_a_graph_too_large_to_tabulate_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipebench_graphpipe.search.MOST_STAGES", 10)
    with pytest.raises(UnsupportedProblem, match="12 operators"):
        run(series_parallel(1))


@pytest.mark.parametrize(
    "options", [{"targets": 0}, {"targets": 101}, {"tolerance": 1.0}, {"tolerance": -0.1}, {"near": -1}]
)
def test_wrong_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InvalidValue, match=next(iter(options))):
        GraphPipeOptions(**options)  # type: ignore[arg-type]
