"""A row of the plan that the small log of tests.bench.calibration.logs is of."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from pipebench.bench.accuracy.expression import express
from pipebench.bench.accuracy.measurement import Predictor, plan_of
from pipebench.bench.calibration.megatron_log import megatron_run
from pipebench.bench.services import HostServices
from pipebench.bench.store import Store
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.hooks.manager import Host
from pipebench.simulation.simulate import simulate
from tests.bench.calibration.logs import megatron
from tests.bench.store.made import stored

DEVICE = "A100-SXM4-80GB"


class LoggedRun(NamedTuple):
    """Two stages on eight devices, two tensor-parallel ranks and two replicas each; their step in seconds."""

    problem: Problem
    plan: Plan
    schedule: FiniteSchedule
    simulated_s: float


@cache
def logged_run(**changes: object) -> LoggedRun:
    """changes: of the log's arguments."""
    run = express(megatron_run(megatron(**changes), "x.log", DEVICE))
    services = HostServices(Host())
    problem = Predictor(services).problem(run)
    plan = plan_of(problem, run)
    schedule = services.schedule(run.scheduler, problem, plan)
    assert isinstance(schedule, FiniteSchedule)
    return LoggedRun(problem, plan, schedule, simulate(problem, plan, schedule).total_ns / 1e9)


def store_of_logged_run(folder: Path, **changes: object) -> str:
    """A store with one row of it."""
    problem, plan, schedule, simulated_s = logged_run(**changes)
    own = {"problem_id": problem.problem_id, "workload_id": problem.workload_id, "mini_batch": problem.mini_batch}
    found = stored(0, simulated_s=simulated_s, **own)
    Store.open(folder).append(found, problem, plan, schedule)
    return str(folder)
