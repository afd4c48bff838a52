"""The bound that counts memory, waits and all-reduces, against plans whose memory just fits."""

from itertools import islice
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bench.services import HostServices
from pipebench.bounds import time_bound
from pipebench.check import check_schedule
from pipebench.costs.placement import micro_batches_of
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import StepCosts
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import Alternative
from pipebench.hooks.manager import Host
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.bounds.drawn_problems import problems
from tests.bounds.every_plan import plans
from tests.nightly import examples
from tests.simulation.random_plans import executable_schedules, planned_problems

SERVICES = HostServices(Host())


def varied(random: Random, problem: Problem, plan: Plan) -> tuple[Problem, Plan]:
    """The plan with alternatives and recomputing stages, the problem with optimizers, steps and shared weights."""
    (costs,) = problem.profile.costs
    operators = []
    for each in costs.operators:
        scale = random.choice([0.5, 1.0, 2.0])
        other = Alternative(
            id="other", forward_s=tuple(scale * time_s for time_s in each.forward_s),
            backward_s=tuple(scale * time_s for time_s in each.backward_s),
            parameter_bytes=random.choice([0, 4]), saved_bytes_per_sample=random.choice([0.0, 1.5, 4.0]),
            fixed_bytes=random.choice([0, 2]), transient_bytes_per_sample=random.choice([0.0, 3.0]),
        )  # fmt: skip
        operators.append(replace(each, alternatives=(other,) if random.random() < 0.5 else ()))
    graph = problem.profile.graph
    if graph.parameters and random.random() < 0.4:
        name = graph.parameters[0].name
        graph = replace(graph, operators=tuple(replace(op, parameters=(name,)) for op in graph.operators))
    profile = replace(problem.profile, graph=graph, costs=(replace(costs, operators=tuple(operators)),))
    step = StepCosts(
        framework="drawn", optimizer_s_per_element=random.choice([0.0, 3e-9]),
        gradient_s_per_element=random.choice([0.0, 1e-9]), reduce_overlap=random.choice([0.0, 0.4, 1.0]),
        spreads_rings=random.random() < 0.5,
    )  # fmt: skip
    regime = Regime(
        mode="async" if plan.pipelines == 1 and random.random() < 0.4 else "sync",
        gradient_precision=random.choice([None, "bf16"]),
        optimizer=random.choice(["none", "sgd", "adam"]),
        optimizer_sharding=random.choice(["none", "zero1", "zero3"]),
        step=random.choice([None, step]),
    )
    by_name = {each.operator: each for each in operators}
    chosen = {name: random.choice([""] + [a.id for a in each.alternatives]) for name, each in by_name.items()}
    again = {name: random.choice(["none", "none", "stage"]) for name in by_name}
    stages = tuple(
        replace(stage, choice=tuple(chosen[name] for name in stage.operators), recompute=again[stage.operators[0]])
        for stage in plan.stages
    )
    return replace(problem, profile=profile, regime=regime), replace(plan, stages=stages)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_random_plan_that_just_fits_is_below_the_bound(data: st.DataObject) -> None:
    problem, plan = data.draw(planned_problems())
    random = data.draw(st.randoms(use_true_random=False))
    problem, plan = varied(random, problem, plan)
    schedule = data.draw(executable_schedules(problem, plan))
    peaks = check_schedule(problem, plan, schedule).peak_bytes
    assert peaks
    cluster = problem.cluster
    used = replace(cluster, types=(replace(cluster.types[0], memory_bytes=max(1, *peaks.values())),))
    fitting = replace(problem, cluster=used)
    assert check_schedule(fitting, plan, schedule).status == "valid"
    total = simulate(fitting, plan, schedule).total_ns
    assert time_bound(fitting).ns <= total, (time_bound(fitting), total)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
@given(problems(), st.booleans(), st.randoms(use_true_random=False))
def test_no_plan_of_a_tiny_problem_that_just_fits_is_below_the_bound(
    problem: Problem, overhead: bool, random: Random
) -> None:
    """Of every plan some, each on as many devices as it has and with no byte to spare."""
    if overhead:
        problem = with_overhead(problem)
    every = [
        plan
        for plan in islice(plans(problem, recompute=problem.cluster.size < 3), 3000)
        if all(stage.turns <= micro_batches_of(problem, plan, stage) for stage in plan.stages)
    ]
    for plan in random.sample(every, min(8, len(every))):
        for scheduler in ("greedy", "1f1b", "1f1b*", "1f1b-rr"):
            try:
                schedule = SERVICES.schedule(scheduler, problem, plan)
            except PipebenchError:
                continue
            verdict = check_schedule(problem, plan, schedule)
            if verdict.status != "valid":
                continue
            fitting = with_memory(problem, plan, max(1, *verdict.peak_bytes.values()))
            seconds = metrics(fitting, plan, simulate(fitting, plan, schedule)).seconds
            bound = time_bound(fitting)
            assert bound.ns <= round(seconds * 1e9), (scheduler, plan, bound)


def with_memory(problem: Problem, plan: Plan, memory_bytes: int) -> Problem:
    """The problem on the devices that the plan uses, with so much memory each."""
    on = problem.cluster
    types = (replace(on.types[0], memory_bytes=memory_bytes),)
    pins = problem.pins
    devices = on.devices if pins.pipeline or pins.data_parallel else on.devices[: plan.devices_used]
    return replace(problem, cluster=replace(on, types=types, devices=devices))


def with_overhead(problem: Problem) -> Problem:
    """The problem with runs that take 20 ns more whatever their samples."""
    (costs,) = problem.profile.costs
    sizes = (1, 4)
    operators = tuple(
        replace(
            each,
            forward_s=tuple(10e-9 + each.forward_s[0] * size for size in sizes),
            backward_s=tuple(10e-9 + each.backward_s[0] * size for size in sizes),
            weight_gradient_s=(),
            alternatives=(),
        )
        for each in costs.operators
    )
    costs = replace(costs, micro_batches=sizes, operators=operators)
    return replace(problem, profile=replace(problem.profile, costs=(costs,)))
