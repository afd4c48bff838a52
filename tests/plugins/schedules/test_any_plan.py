"""Every scheduler that ships, where features of problems and plans are mixed: a valid schedule, or a reason."""

from collections import Counter
from random import Random

import pytest

from pipebench.check import check_schedule
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.simulation.simulate import simulate
from tests.bounds.mixed_problems import mixed_problem, with_just_enough
from tests.nightly import mostly_at_night
from tests.plugins.running import services
from tests.plugins.schedules.mixed_plans import any_plan

OPTIONS = {
    "1f1b": ("warmup=+2",),
    "kfkb": ("k=2", "k=3,warmup=+2"),
    "greedy": ("live=1", "live=0.5,links=true"),
    "finite-bnb": ("nodes=200",),
    "periodic-bnb": ("nodes=500",),
}
SLOW = {"finite-bnb", "periodic-ilp"}
"""They run on a part of the plans."""
KEEP_TO_MEMORY = {"1f1b*", "1f1b-rr", "modulo", "periodic-bnb", "periodic-ilp", "finite-bnb"}
"""All others make an order for which memory may be short; `greedy` where it finds none that fits."""
SHIPPED = sorted(services().host.slot("schedulers"))


def references(name: str) -> list[str]:
    """The scheduler without options, and with some."""
    given = [f"{name}[{options}]" for options in OPTIONS.get(name, ())]
    return given or [name] if name in SLOW else [name, *given]


def sound_schedule(problem: Problem, plan: Plan, name: str, roomy: bool) -> Schedule | None:
    """The schedule, which the check accepts and the simulator runs no slower than it says; None: refused."""
    try:
        schedule = services().schedule(name, problem, plan)
    except UnsupportedProblem:
        return None
    except InfeasibleProblem as error:
        if roomy and "nodes" not in error.message and not any(stage.in_flight for stage in plan.stages):
            pytest.fail(f"{name}: {error.message}")
        return None
    verdict = check_schedule(problem, plan, schedule)
    if verdict.status != "valid":
        assert verdict.witness is not None
        assert verdict.witness.rule == "memory", (name, verdict.witness)
        assert name.split("[", maxsplit=1)[0] not in KEEP_TO_MEMORY
    trace = simulate(problem, plan, schedule)
    if isinstance(schedule, PeriodicSchedule) and not shares_bandwidth(problem):
        assert trace.period_ns is not None
        assert trace.period_ns <= schedule.period_ns, name
    return schedule


def shares_bandwidth(problem: Problem) -> bool:
    """Whether messages wait for each other at ports, of which patterns know nothing."""
    return any(level.shared_bandwidth_bytes_s for level in problem.cluster.levels)


@pytest.mark.parametrize("seed", mostly_at_night(range(100), range(2)))
def test_a_schedule_is_valid_or_there_is_a_reason(seed: int) -> None:
    random, made = Random(seed), Counter[str]()
    for _ in range(60):
        problem = mixed_problem(random)
        plans = [plan for _ in range(4) if (plan := any_plan(random, problem))]
        known: dict[int, int] = {}
        for plan in plans:
            roomy = not known or random.random() < 0.5
            held = problem if roomy else with_just_enough(problem, known)
            for name in SHIPPED:
                if name in SLOW and random.random() < 0.6:
                    continue
                for reference in references(name):
                    schedule = sound_schedule(held, plan, reference, roomy)
                    if schedule is not None:
                        made[name] += 1
                        known = check_schedule(held, plan, schedule).peak_bytes
    assert set(made) == set(SHIPPED)
