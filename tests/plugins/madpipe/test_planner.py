"""madpipe: never worse than any contiguous planner, valid, bounded from below, and clear about what it refuses."""

import re
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.contiguous import longest_period
from pipebench.check import check_pins, check_schedule
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, PipebenchError, UnsupportedProblem
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.formats.profiles.shipped import load_profile
from pipebench.hooks.context import Context
from pipebench.simulation.simulate import simulate
from pipebench_baselines.contiguous_exact import plan as contiguous_exact
from pipebench_baselines.plugin import ContiguousOptions
from pipebench_madpipe.allocation import Allocation, Estimate, admits
from pipebench_madpipe.label_search import estimated_optimum
from pipebench_madpipe.planner import plan
from pipebench_madpipe.plugin import MadPipeOptions, pipebench_planners
from tests.algorithms.strategies import chains, dags
from tests.builders import chain_problem, cluster, dag_problem
from tests.nightly import examples
from tests.plugins.contiguous import several_sizes
from tests.plugins.madpipe.brute_force import chain_of, class_of, class_optimum, devices_of, on_devices, solved
from tests.plugins.madpipe.networks import network
from tests.plugins.madpipe.pipedream_readings import READINGS, pipedream_period
from tests.plugins.running import services

LAYERS = MadPipeOptions(cuts="layers")


def planned(problem: Problem, options: MadPipeOptions = LAYERS) -> PlanResult:
    """The result, found valid, at the period that the simulation settles to, and not below its own bound."""
    result = plan(problem, Context(options=options))
    assert isinstance(result.schedule, PeriodicSchedule)
    verdict = check_schedule(problem, result.plan, result.schedule, strict_buffers=False)
    assert verdict.status == "valid", verdict.witness
    assert check_pins(problem, result.plan).status == "valid"
    repeats = problem.mini_batch // result.plan.stages[0].micro_batch
    assert result.claimed_s == pytest.approx(repeats * result.schedule.period_ns * 1e-9)
    assert simulate(problem, result.plan, result.schedule).period_ns <= result.schedule.period_ns
    assert result.lower_bound_s is not None
    assert result.lower_bound_s <= result.claimed_s
    assert (result.termination == "optimal") == (result.lower_bound_s in (0.0, result.claimed_s))
    return result


@settings(max_examples=examples(60), deadline=None)
@given(chains())
def test_never_worse_than_contiguous_exact(problem: Problem) -> None:
    try:
        contiguous = contiguous_exact(problem, Context(options=ContiguousOptions())).claimed_s
    except InfeasibleProblem:
        contiguous = None
    try:
        found = planned(problem).claimed_s
    except InfeasibleProblem:
        assert contiguous is None
        return
    assert found is not None
    assert contiguous is None or found <= contiguous


@settings(max_examples=examples(40), deadline=None)
@given(chains(most_layers=4, most_devices=3))
def test_between_its_bound_and_above_the_optimum_of_the_class(problem: Problem) -> None:
    optimum = class_optimum(problem)
    try:
        result = planned(problem)
    except InfeasibleProblem:
        assert optimum is None
        return
    assert optimum is not None
    assert result.lower_bound_s is not None
    assert result.lower_bound_s <= optimum * 1e-9 * (1 + 1e-12)
    assert result.claimed_native is not None
    assert optimum <= result.claimed_native
    if result.termination == "optimal":
        assert result.claimed_native == optimum


@settings(max_examples=examples(30), deadline=None)
@given(dags(most_operators=7, devices=3), st.integers(60, 400), st.sampled_from([None, "stage"]))
def test_graphs_shared_weights_workspace_and_recomputation(
    problem: Problem, memory: int, recompute: str | None
) -> None:
    on = cluster(3, memory, 5e8)
    pins = Pins(recompute=recompute)  # type: ignore[arg-type]
    with suppress(InfeasibleProblem):
        planned(msgspec.structs.replace(problem, cluster=on, pins=pins), MadPipeOptions())


def test_inceptions_trunk_lives_on_behind_its_auxiliary_head() -> None:
    """The study's exact value is 95.148 ms; with the head's small tensor in the trunk's place it was 94.480."""
    problem = network("inception_v3", 8, 8)
    below = longest_period(chain_of(problem)) + 1
    found = estimated_optimum(class_of(problem), Estimate(False, False), 1, below)
    assert round(found.lower_ns / 1e6, 3) == 95.148


@pytest.mark.parametrize(
    ("devices", "memory", "contiguous", "printed", "tight", "tight_scheduled", "portfolio", "ours"),
    [
        (2, 8, 424.1, 298.2, 355.6, 561.5, 424.1, 385.4),
        (2, 12, 298.2, 276.4, 276.5, 276.5, 276.5, 276.5),
        (4, 6, 324.7, 233.9, 276.5, 425.9, 324.7, 300.4),
        (4, 12, 182.2, 155.3, 161.1, 161.1, 161.1, 161.1),
        (8, 6, 195.0, 173.7, 195.0, 195.0, 195.0, 195.0),
        (8, 8, 153.6, 132.6, 141.0, 141.0, 141.0, 141.0),
        (8, 12, 112.7, 108.6, 108.6, 109.5, 109.5, 103.7),
    ],
)
def test_rows_of_the_study_on_resnet50(
    devices: int,
    memory: int,
    contiguous: float,
    printed: float,
    tight: float,
    tight_scheduled: float,
    portfolio: float,
    ours: float,
) -> None:
    problem = network("resnet50", devices, memory)
    of, below = class_of(problem), longest_period(chain_of(problem)) + 1
    assert (
        ms(contiguous_exact(problem, Context(options=ContiguousOptions(cuts="layers"))).claimed_native)
        == contiguous
    )
    assert ms(estimated_optimum(of, Estimate(False, False), 1, below).lower_ns) == printed
    found = estimated_optimum(of, Estimate(True, False), 1, below)
    assert ms(found.lower_ns) == tight
    assert found.best is not None
    run = solved(problem, on_devices(problem, found.best.bounds, devices_of(found.best.special)))
    assert run is not None
    assert ms(run.period) == tight_scheduled
    # The study charged neighbours on the special GPU a transfer and four buffers; the cost model does not.
    assert ms(planned(problem).claimed_native) <= ours <= portfolio


@pytest.mark.parametrize(
    ("bounds", "special", "scheduled"), [((0, 14, 39), "*-", 595.0), ((0, 14, 38, 39), "*-*", 595.2)]
)
def test_the_printed_estimate_has_several_optima(bounds: tuple[int, ...], special: str, scheduled: float) -> None:
    """Why the study's column `paper scheduled` has 595.2 ms at P = 2 and 8 GB, and the first allocation 595.0.

    Both meet the estimate's optimum of 298.2 ms; which one MadPipe-DP returns is not stated. Of all allocations of
    at most four stages these two, and the second with its last layers split, are the only ones that do.
    """
    problem = network("resnet50", 2, 8)
    of, printed = class_of(problem), Estimate(False, False)
    found = Allocation(bounds, tuple(mark == "*" for mark in special))
    least = estimated_optimum(of, printed, 1, longest_period(chain_of(problem)) + 1).lower_ns
    assert ms(least) == 298.2
    assert admits(of.table, *found.arrays, of.memory, least, printed)
    run = solved(problem, on_devices(problem, bounds, devices_of(found.special)))
    assert run is not None
    assert ms(run.period) == scheduled


@pytest.mark.parametrize(
    ("devices", "memory", "scheduled"),
    [(2, 12, 466.8), (4, 6, 452.5), (4, 12, 180.0), (8, 6, 300.1), (8, 8, 217.9), (8, 12, 109.5)],
)
def test_the_printed_allocation_of_resnet50_scheduled(devices: int, memory: int, scheduled: float) -> None:
    """Column `paper scheduled` of the study; P = 2 with 8 GB is above."""
    problem = network("resnet50", devices, memory)
    of = class_of(problem)
    found = estimated_optimum(of, Estimate(False, False), 1, longest_period(chain_of(problem)) + 1).best
    assert found is not None
    run = solved(problem, on_devices(problem, found.bounds, devices_of(found.special)))
    assert run is not None
    assert ms(run.period) == scheduled


def ms(period_ns: float | None) -> float:
    assert period_ns is not None
    return round(period_ns / 1e6, 1)


@pytest.mark.parametrize("name", ["resnet50", "inception_v3", "densenet121", "vgg16"])
@pytest.mark.parametrize(("devices", "memory", "bandwidth"), [(2, 8, 12), (3, 12, 24), (5, 14, 12), (8, 6, 24)])
def test_never_worse_than_pipedream_under_any_reading(
    name: str, devices: int, memory: int, bandwidth: int
) -> None:
    problem = network(name, devices, memory, bandwidth)
    periods = [pipedream_period(problem, reading) for reading in READINGS]
    try:
        best = planned(problem).claimed_native
    except InfeasibleProblem:
        assert periods == [None] * 3
        return
    assert best is not None
    assert all(period is None or best <= period for period in periods)


def test_the_best_micro_batch_is_swept_and_a_pin_is_kept() -> None:
    problem = several_sizes(3)
    assert planned(problem).plan.stages[0].micro_batch == 4
    pinned = msgspec.structs.replace(problem, pins=Pins(micro_batch=2))
    assert planned(pinned).plan.stages[0].micro_batch == 2
    with pytest.raises(InvalidValue, match="does not divide"):
        msgspec.structs.replace(problem, pins=Pins(micro_batch=3))


@pytest.mark.parametrize("pins", [Pins(virtual_stages=1), Pins(pipeline=2), Pins(reserve=0.1), Pins(pipeline=1)])
def test_pins_are_honoured(pins: Pins) -> None:
    problem = chain_problem(
        [2, 7, 8, 20], [1, 15, 11, 15], cluster(2, 300, 4e9), activations=[1, 3, 15, 9, 0], weights=[1, 1, 2, 3]
    )
    planned(msgspec.structs.replace(problem, pins=pins))


def test_fewer_layers_than_devices() -> None:
    result = planned(chain_problem([5, 5], [5, 5], cluster(8)))
    assert result.claimed_native == 10
    assert any("fewer layers than there are devices" in notice for notice in result.notices)


def test_layers_that_cost_nothing() -> None:
    result = planned(chain_problem([0, 5, 0, 0], [0, 5, 0, 0], cluster(3)))
    assert result.claimed_native == 10
    assert planned(chain_problem([0, 0], [0, 0], cluster(2))).claimed_native == 1


def test_memory_below_any_plan() -> None:
    problem = chain_problem([5, 5], [5, 5], cluster(2, 10), weights=[100, 100])
    with pytest.raises(InfeasibleProblem, match="300 bytes"):
        plan(problem, Context(options=LAYERS))


def test_bandwidth_zero_is_no_cluster() -> None:
    with pytest.raises(PipebenchError, match="bandwidth"):
        cluster(2, bandwidth=0.0)


def test_the_sync_regime_is_refused() -> None:
    with pytest.raises(UnsupportedProblem, match="async"):
        plan(chain_problem([1], [1], cluster(1), mode="sync"), Context(options=LAYERS))


def test_found_by_name_on_a_shipped_profile_that_is_no_chain() -> None:
    profile = load_profile("resnet50")
    device = profile.costs[0].device_type
    on = Cluster(
        name="flat",
        types=(DeviceType(name=device, memory_bytes=8 * 10**9),),
        devices=(device,) * 4,
        levels=(LinkLevel(name="flat", group=4, latency_s=0.0, bandwidth_bytes_s=12e9),),
        link_mode="half",
    )
    problem = Problem(profile=profile, cluster=on, mini_batch=8, regime=Regime(mode="async"))
    result = services().plan("madpipe", problem)
    assert result.schedule is not None
    assert check_schedule(problem, result.plan, result.schedule).status == "valid"
    (notice,) = (notice for notice in result.notices if "no chain" in notice)
    assert ("passed on" in notice) == (result.plan.routing == "relay")


def test_a_graph_without_single_tensor_cuts_is_cut_where_several_cross() -> None:
    # Every operator feeds the next two: no cut is crossed by one tensor alone, so cuts=layers leaves one layer.
    tensors = [(op, (op + 1, op + 2)[: 5 - op], 1) for op in range(5)]
    problem = dag_problem([3] * 6, [3] * 6, tensors, cluster(3), mode="async", mini_batch=1)
    whole, cut = planned(problem), planned(problem, MadPipeOptions())
    assert len(whole.plan.stages) < len(cut.plan.stages)
    assert cut.claimed_native is not None
    assert whole.claimed_native is not None
    assert cut.claimed_native < whole.claimed_native
    assert any("no chain" in notice for notice in cut.notices)


def test_every_correction_of_the_paper_is_named() -> None:
    (described,) = pipebench_planners()
    text = " ".join(described.deviations)
    named = {f"A{number}" for number in range(1, 15)}
    assert named <= set(re.findall(r"A\d+", text))
