"""The bound over stages in a row, against plans of the class in random and shipped orders, memory just enough."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds.contiguous import class_bound, in_class, recomputes
from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph, Parameter
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem, Regime
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile
from pipebench.domain.schedule import Schedule
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.class_plans import every_plan, plans, problems, with_memory
from tests.bounds.plain_class_bound import plain_class_bound
from tests.builders import cluster, dag_problem, stages_plan
from tests.nightly import examples
from tests.plugins.running import services
from tests.simulation.random_plans import executable_schedules

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
FINITE = ("1f1b", "gpipe", "zb-h1", "greedy")
PERIODIC = ("1f1b*", "1f1b-rr")


def hold(problem: Problem, plan: Plan, schedule: Schedule) -> None:
    """On devices with just the memory that the schedule needs, the plan is not below the bound."""
    verdict = check_schedule(problem, plan, schedule)
    assume(verdict.status == "valid")
    assume(in_class(problem, plan, schedule))
    tight = with_memory(problem, max(verdict.peak_bytes.values()))
    assert check_schedule(tight, plan, schedule).status == "valid"
    taken_s = metrics(problem, plan, simulate(tight, plan, schedule)).seconds
    again = recomputes(problem, plan)
    for wider in {True, again}:
        bound = class_bound(tight, recomputes=wider)
        assert bound is not None
        assert bound.ns <= round(taken_s * 1e9), (bound, plan)


@settings(max_examples=examples(150), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_no_plan_is_below_it_in_any_order(data: st.DataObject) -> None:
    problem = data.draw(problems("sync"))
    plan = data.draw(plans(problem))
    assume(check_plan(problem, plan).status == "valid")
    hold(problem, plan, data.draw(executable_schedules(problem, plan)))


@settings(max_examples=examples(100), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_no_plan_is_below_it_under_a_scheduler(data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["sync", "async"]))
    problem = data.draw(problems(mode))
    plan = data.draw(plans(problem))
    assume(check_plan(problem, plan).status == "valid")
    name = data.draw(st.sampled_from([*FINITE, *PERIODIC] if mode == "async" else FINITE))
    try:
        schedule = services().schedule(name, problem, plan)
    except PipebenchError:
        assume(False)
    hold(problem, plan, schedule)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_no_plan_that_honours_pins_is_below_it(data: st.DataObject) -> None:
    """Everything that the plan does is pinned, one thing or all."""
    problem = data.draw(problems("sync"))
    plan = data.draw(plans(problem))
    assume(check_plan(problem, plan).status == "valid")
    stage = plan.stages[0]
    said = {
        "micro_batch": stage.micro_batch,
        "micro_batch_size": stage.micro_batch // (1 if stage.turns > 1 else stage.data_parallel),
        "data_parallel": stage.data_parallel,
        "tensor_parallel": stage.tensor_parallel,
        "pipeline": len(plan.stages),
        "virtual_stages": 1,
        "recompute": stage.recompute,
    }
    kept = data.draw(st.sets(st.sampled_from(sorted(said)), min_size=1))
    try:
        pinned = replace(problem, pins=Pins(**{name: said[name] for name in kept}))
    except PipebenchError:
        assume(False)
    assume(check_pins(pinned, plan).status == "valid")
    hold(pinned, plan, data.draw(executable_schedules(pinned, plan)))


@settings(max_examples=6, deadline=None, suppress_health_check=SLOW)
@given(problems("sync", most=3, devices=3), st.integers(0, 3))
def test_no_plan_of_a_tiny_problem_is_below_it(problem: Problem, share: int) -> None:
    """All plans under all shipped orders, on devices of less and less memory."""
    assume(problem.mini_batch <= 4)
    taken: list[tuple[int, int]] = []
    for plan in every_plan(problem):
        for name in FINITE:
            try:
                schedule = services().schedule(name, problem, plan)
            except PipebenchError:
                continue
            verdict = check_schedule(problem, plan, schedule)
            if verdict.status == "valid":
                peak = max(verdict.peak_bytes.values())
                taken.append((peak, simulate(problem, plan, schedule).total_ns))
    peaks = sorted({peak for peak, _ in taken})
    memory = peaks[share * (len(peaks) - 1) // 3]
    bound = class_bound(with_memory(problem, memory))
    assert bound is not None
    assert bound.ns <= min(ns for peak, ns in taken if peak <= memory)


@pytest.mark.parametrize(("there", "back"), [(3.0, 0.0), (0.0, 3.0)])
def test_a_message_alone_on_a_link_meets_no_other(there: float, back: float) -> None:
    """A micro-batch is away for 11 of 10 ns: the message and the gradient back would meet on a link of both.

    It stays for 20 ns, two are live, and no third one fits.
    """
    two = cluster(2, memory=43)
    problem = dag_problem([4, 4], [5, 4], [(0, (1,), 3)], two, saved=[20, 0], mode="async", mini_batch=4)
    graph = problem.profile.graph
    tensor = replace(graph.tensors[0], forward_bytes_per_sample=there, gradient_bytes_per_sample=back)
    profile = replace(problem.profile, graph=replace(graph, tensors=(tensor,)))
    problem = replace(problem, profile=profile, pins=Pins(data_parallel=1))
    plan = stages_plan([[0], [1]])
    schedule = services().schedule("1f1b*", problem, plan)
    assert check_schedule(problem, plan, schedule).status == "valid"
    assert metrics(problem, plan, simulate(problem, plan, schedule)).seconds == pytest.approx(40e-9)
    bound = class_bound(problem)
    assert bound is not None
    assert bound.ns == 40


@settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
@given(st.data())
def test_it_is_what_the_conditions_say(data: st.DataObject) -> None:
    """Against the recursion in plain Python, with costs by the cost model one stage at a time."""
    problem = data.draw(problems(data.draw(st.sampled_from(["sync", "async"])), most=4, devices=4, plain=True))
    plan = data.draw(plans(problem))
    edges = CostModel(problem).messages(plan)
    peaks = [CostModel(problem).stage_memory(plan, k, edges).peak(1) for k in range(len(plan.stages))]
    tight = with_memory(problem, max(peaks) + data.draw(st.integers(0, 60)))
    bound = class_bound(tight)
    assert bound is not None
    assert bound.ns == plain_class_bound(tight)


def test_what_replicas_exchange_hides_by_what_ways_differ() -> None:
    """One way has the shortest forward, the other the shortest backward; with zero3 both wait for the links.

    240 bytes over two replicas at 1 GB/s: 120 ns beside a forward, 240 beside a backward, whichever way.
    """
    way = Alternative(
        id="way", forward_s=(100e-9,), backward_s=(200e-9,), parameter_bytes=240, saved_bytes_per_sample=0.0
    )
    costs = OperatorCosts(operator="op", forward_s=(10e-9,), backward_s=(300e-9,), alternatives=(way,))
    problem = Problem(
        profile=Profile(
            name="two ways",
            graph=OperatorGraph(
                name="two ways",
                operators=(Operator(name="op", kind="op", parameters=("w",)),),
                parameters=(Parameter(name="w", bytes=240),),
            ),
            costs=(DeviceCosts(device_type="gpu", micro_batches=(1,), operators=(costs,)),),
        ),
        cluster=Cluster(
            name="two",
            types=(DeviceType(name="gpu", memory_bytes=10**6),),
            devices=("gpu", "gpu"),
            levels=(LinkLevel(name="link", group=2, bandwidth_bytes_s=1e9),),
        ),
        mini_batch=2,
        regime=Regime(mode="sync", optimizer_sharding="zero3"),
        pins=Pins(data_parallel=2, recompute="none"),
    )
    stage = Stage(operators=("op",), devices=(0, 1), data_parallel=2, micro_batch=2, choice=("way",))
    plan = Plan(stages=(stage,))
    schedule = services().schedule("1f1b", problem, plan)
    taken_s = metrics(problem, plan, simulate(problem, plan, schedule)).seconds
    assert round(taken_s * 1e9) == 120 + 240
    bound = class_bound(problem, recomputes=True)
    assert bound is not None
    assert bound.ns <= 360
