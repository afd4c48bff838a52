"""contiguous-exact: published optima, micro-batches, pins, the reserve, refusals, limits of time."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.algorithms.chains.contiguous_plan import take_turns
from pipebench.algorithms.graph_orders import linearise
from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.formats.profiles.pipedream import PipeDreamOptions, read
from pipebench.hooks.context import Context, DeadlineReached
from pipebench_baselines.contiguous_exact import plan
from pipebench_baselines.plugin import ContiguousOptions
from tests.algorithms.oracles import ORACLES
from tests.algorithms.strategies import dags
from tests.builders import cluster, dag_problem
from tests.plugins.contiguous import pinned, read_graph, resnet50, several_sizes
from tests.shared_data import shared_data


def run(problem: Problem) -> PlanResult:
    """The result, once plan, schedule and pins are checked and the claim is the schedule's."""
    context = Context(options=ContiguousOptions())
    result = plan(problem, context)
    assert check_plan(problem, result.plan).status == "valid"
    assert check_pins(problem, result.plan).status == "valid"
    assert isinstance(result.schedule, PeriodicSchedule)
    verdict = check_schedule(problem, result.plan, result.schedule)
    assert (verdict.status, verdict.witness) == ("valid", None)
    periods = problem.mini_batch // result.plan.stages[0].micro_batch
    assert result.claimed_s == pytest.approx(result.schedule.period_ns * periods * 1e-9, rel=1e-12)
    assert result.claimed_native == result.schedule.period_ns
    model = CostModel(problem)
    works = any(model.stage_times(stage).period for stage in result.plan.stages)
    assert result.lower_bound_s is not None
    if take_turns(model, linearise(problem.profile.graph, "operators"), 1):
        assert (result.termination, result.lower_bound_s) == ("optimal", result.claimed_s if works else 0.0)
    assert context.counters["probes"] > 0
    return result


def period_ns(result: PlanResult) -> int:
    assert isinstance(result.schedule, PeriodicSchedule)
    return result.schedule.period_ns


@pytest.mark.parametrize("name", ORACLES)
def test_published_oracles(name: str) -> None:
    assert period_ns(run(ORACLES[name].problem)) == ORACLES[name].contiguous


@pytest.mark.parametrize(
    ("devices", "memory_gb", "period_ms"),
    [(2, 8, 424.1), (4, 6, 324.7), (4, 12, 182.2), (8, 6, 195.0), (8, 8, 153.6), (8, 12, 112.7)],
)
def test_resnet50_of_the_study(devices: int, memory_gb: int, period_ms: float) -> None:
    problem = resnet50(shared_data("pipedream/resnet50.txt"), devices, memory_gb * 10**9)
    assert len(problem.profile.graph.operators) == 39
    assert period_ns(run(problem)) / 1e6 == pytest.approx(period_ms, abs=0.05)


def test_resnet50_is_linearised_into_39_layers() -> None:
    nodes, layers, _ = read_graph(shared_data("pipedream/resnet50.txt"))
    assert (len(layers), layers.relay) == (39, False)
    assert sum(map(len, layers.operators)) == len(nodes)


@pytest.mark.parametrize("name", ["alexnet", "densenet121", "gnmt", "inception_v3", "resnet50", "vgg16"])
@pytest.mark.parametrize("devices", [4, 16])
def test_profiles_as_they_are_read(name: str, devices: int) -> None:
    path = shared_data(f"pipedream/{name}.txt")
    profile = read(path.read_bytes(), str(path), PipeDreamOptions())
    machines = cluster(devices, 12 * 10**9, 12e9)
    kind = msgspec.structs.replace(machines.types[0], name=profile.device_types[0])
    machines = msgspec.structs.replace(machines, types=(kind,), devices=(kind.name,) * devices)
    samples = profile.costs[0].micro_batches[0]
    problem = Problem(profile=profile, cluster=machines, mini_batch=samples, regime=Regime(mode="async"))
    result = run(problem)
    model = CostModel(problem)
    work = sum(int(times.sum()) for times in model.times.at(samples))
    assert work / devices <= period_ns(result) <= work


def test_the_best_micro_batch_is_chosen_and_memory_may_force_a_smaller_one() -> None:
    each = {size: run(pinned(several_sizes(3), micro_batch=size)) for size in (1, 2, 4)}
    best = run(several_sizes(3))
    assert best.claimed_s == min(r.claimed_s for r in each.values() if r.claimed_s is not None)
    assert best.plan.stages[0].micro_batch == 4
    least = {}
    for size in (1, 2, 4):
        with pytest.raises(InfeasibleProblem) as error:
            run(pinned(several_sizes(3, memory=10), micro_batch=size))
        assert error.value.hint is not None
        least[size] = int(error.value.hint.split()[6])
    assert least[1] < least[2] < least[4]
    small = run(several_sizes(3, memory=least[2]))
    assert small.plan.stages[0].micro_batch < 4
    with pytest.raises(InfeasibleProblem):
        run(pinned(several_sizes(3, memory=least[2] - 1), micro_batch=2))


def test_on_full_links_the_bound_is_that_of_any_order() -> None:
    problem = several_sizes(3, memory=200)
    machines = msgspec.structs.replace(problem.cluster, link_mode="full")
    full = plan(msgspec.structs.replace(problem, cluster=machines), Context(options=ContiguousOptions()))
    half = run(problem)
    assert full.claimed_s == half.claimed_s
    assert full.lower_bound_s is not None
    assert half.lower_bound_s is not None
    assert full.lower_bound_s < half.lower_bound_s
    assert (full.termination, half.termination) == ("heuristic", "optimal")
    assert "any periodic order" in full.bound_scope
    assert "1F1B*" in half.bound_scope


def test_idle_devices_and_a_single_profiled_size_are_said() -> None:
    problem = dag_problem([5] * 2, [5] * 2, [(0, (1,), 2)], cluster(3), mode="async")
    assert len(run(problem).notices) == 2
    assert "uses 2 of 3 devices" in run(problem).notices
    assert run(several_sizes(3)).notices == ()


def test_the_pipeline_degree_is_kept() -> None:
    for degree in (1, 2, 4):
        assert len(run(pinned(several_sizes(4), pipeline=degree)).plan.stages) == degree
    with pytest.raises(InfeasibleProblem, match="there are 4 devices"):
        run(pinned(several_sizes(4), pipeline=5))
    with pytest.raises(InfeasibleProblem, match="can be cut into 5 at most"):
        run(pinned(several_sizes(9), pipeline=6))


def test_recomputation_is_kept_where_it_is_pinned() -> None:
    plain, again = run(several_sizes(3)), run(pinned(several_sizes(3), recompute="stage"))
    assert {stage.recompute for stage in again.plan.stages} == {"stage"}
    assert period_ns(again) > period_ns(plain)


@pytest.mark.parametrize("pin", ["data_parallel", "tensor_parallel", "virtual_stages"])
def test_pins_beyond_its_class_are_unsupported(pin: str) -> None:
    with pytest.raises(UnsupportedProblem, match=pin):
        run(pinned(several_sizes(3), **{pin: 2}))
    assert run(pinned(several_sizes(3), **{pin: 1})).plan.stages


def test_sync_and_mixed_devices_are_unsupported() -> None:
    with pytest.raises(UnsupportedProblem, match="async"):
        run(msgspec.structs.replace(several_sizes(3), regime=Regime(mode="sync")))
    problem = several_sizes(2)
    other = msgspec.structs.replace(problem.cluster.types[0], name="other")
    costs = msgspec.structs.replace(problem.profile.costs[0], device_type="other")
    mixed = msgspec.structs.replace(
        problem,
        profile=msgspec.structs.replace(problem.profile, costs=(*problem.profile.costs, costs)),
        cluster=msgspec.structs.replace(
            problem.cluster, types=(*problem.cluster.types, other), devices=("gpu", "other")
        ),
    )
    with pytest.raises(UnsupportedProblem, match="one type"):
        run(mixed)


def test_plans_aim_below_the_reserve_and_use_it_only_when_they_must() -> None:
    problem = pinned(several_sizes(3, memory=160), micro_batch=2)
    reserved = pinned(several_sizes(3, memory=200), micro_batch=2, reserve=0.2)
    result = run(reserved)
    assert period_ns(result) == period_ns(run(problem))
    assert check_schedule(reserved, result.plan, result.schedule).fit == "fits"  # type: ignore[arg-type]
    assert "less the reserve" in result.bound_scope
    tight = pinned(several_sizes(3, memory=160), micro_batch=2, reserve=0.9)
    result = run(tight)
    assert check_schedule(tight, result.plan, result.schedule).fit == "tight"  # type: ignore[arg-type]
    assert "reserve" not in result.bound_scope


def test_branches_are_cut_between_operators_and_relayed() -> None:
    # Three branches of two operators from a common start to a common end: no single-tensor cut inside.
    tensors = [
        (0, (1, 3, 5), 2),
        (1, (2,), 1),
        (3, (4,), 1),
        (5, (6,), 1),
        (2, (7,), 1),
        (4, (7,), 1),
        (6, (7,), 1),
    ]
    problem = dag_problem([1] + [5] * 6 + [1], [1] + [9] * 6 + [1], tensors, cluster(4), mode="async")
    result = run(problem)
    assert len(result.plan.stages) == 4
    assert result.plan.routing == "relay"
    assert any("passed on" in notice for notice in result.notices)


def test_hops_between_neighbours_have_their_own_speed() -> None:
    # Two nodes of two devices; a transfer between nodes takes 20 ns one way, inside a node 2 ns.
    slow = LinkLevel(name="network", group=4, bandwidth_bytes_s=1e8)
    node = LinkLevel(name="node", group=2, bandwidth_bytes_s=1e9)
    machines = msgspec.structs.replace(cluster(4), levels=(node, slow))
    problem = dag_problem([5] * 4, [5] * 4, [(0, (1,), 2), (1, (2,), 2), (2, (3,), 2)], machines, mode="async")
    assert period_ns(run(problem)) == 20
    result = run(pinned(problem, pipeline=2))
    assert [stage.devices for stage in result.plan.stages] == [(2,), (3,)]
    assert period_ns(result) == 20
    assert "consecutive devices" in result.bound_scope
    flat = msgspec.structs.replace(problem, cluster=msgspec.structs.replace(machines, levels=(slow,)))
    assert period_ns(run(pinned(flat, pipeline=2))) == 40


@given(dags(), st.integers(40, 400))
def test_whatever_is_planned_is_valid(problem: Problem, memory: int) -> None:
    types = (msgspec.structs.replace(problem.cluster.types[0], memory_bytes=memory),)
    problem = msgspec.structs.replace(problem, cluster=msgspec.structs.replace(problem.cluster, types=types))
    try:
        result = run(problem)
    except InfeasibleProblem:
        return
    model = CostModel(problem)
    busiest = max(model.stage_times(stage).period for stage in result.plan.stages)
    assert period_ns(result) >= busiest


def test_out_of_time_before_any_plan() -> None:
    with pytest.raises(DeadlineReached):
        plan(several_sizes(3), Context(options=ContiguousOptions(), deadline_s=0.0))


def test_out_of_time_with_a_plan_returns_it_as_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([False] * 3)
    monkeypatch.setattr(Context, "out_of_time", lambda self: next(left, True))
    problem = several_sizes(3)
    result = plan(problem, Context(options=ContiguousOptions()))
    monkeypatch.undo()
    assert result.termination == "limit"
    assert result.lower_bound_s is not None
    assert result.claimed_s is not None
    best = run(problem).claimed_s
    assert best is not None
    assert result.lower_bound_s <= best <= result.claimed_s
    assert check_schedule(problem, result.plan, result.schedule).status == "valid"  # type: ignore[arg-type]
