"""The bound that counts memory, waits and all-reduces, against plans whose memory just fits."""

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import time_bound
from pipebench.check import check_schedule
from pipebench.domain.framework import StepCosts
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.profile import Alternative
from pipebench.simulation.simulate import simulate
from tests.simulation.random_plans import executable_schedules, planned_problems


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
        optimizer_sharding=random.choice(["none", "zero1"]),
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


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
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
