"""The time of a step alone is that of the whole simulation, also under costs that the tables were not made for."""

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.domain.problem import Problem
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from pipebench.simulation.step_time import Length, StepTime, length_of, mini_batch_s
from tests.simulation.random_plans import executable_schedules, planned_problems


def slower(problem: Problem, factor: float) -> Problem:
    """Forwards and links take so many times as long."""
    replace = msgspec.structs.replace
    (costs,) = problem.profile.costs
    operators = tuple(
        replace(each, forward_s=tuple(factor * seconds for seconds in each.forward_s)) for each in costs.operators
    )
    levels = tuple(
        replace(level, bandwidth_bytes_s=level.bandwidth_bytes_s / factor) for level in problem.cluster.levels
    )
    profile = replace(problem.profile, costs=(replace(costs, operators=operators),))
    return replace(problem, profile=profile, cluster=replace(problem.cluster, levels=levels))


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_it_is_the_length_of_the_trace(data: st.DataObject) -> None:
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan))
    trace = simulate(problem, plan, schedule)
    made = Length(trace.total_ns, len(trace.kinds), len(trace.transfer_kinds))
    assert length_of(problem, plan, schedule) == made
    assert mini_batch_s(problem, plan, schedule) == metrics(problem, plan, trace).seconds
    step = StepTime(plan, schedule)
    for each in (problem, slower(problem, 3.0), problem):
        assert step.ns(each) == simulate(each, plan, schedule).total_ns
