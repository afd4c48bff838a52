"""Whether a planner's plan is valid, fits, and is not below the bounds."""

from pipebench.bounds import memory_bound, time_bound
from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.defaults import scheduler_for
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.plugins.running import services


def sound_plan(planner: str, problem: Problem) -> Plan:
    """The planner's plan under its own scheduler or the suite's; asserts all of it, its claimed bound too."""
    result = services().plan(planner, problem)
    plan = result.plan
    assert check_plan(problem, plan).status == "valid"
    assert check_pins(problem, plan).status == "valid"
    usual = scheduler_for(problem.regime.mode, plan.placement, plan.takes_turns)
    schedule = result.schedule or services().schedule(result.scheduler or usual, problem, plan)
    verdict = check_schedule(problem, plan, schedule)
    assert verdict.status == "valid"
    seconds = metrics(problem, plan, simulate(problem, plan, schedule)).seconds
    assert time_bound(problem).value <= seconds
    assert memory_bound(problem).value <= max(verdict.peak_bytes.values())
    if result.lower_bound_s is not None:
        assert result.lower_bound_s <= seconds
    return plan
