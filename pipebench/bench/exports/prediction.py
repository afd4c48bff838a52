"""What a plan takes and leaves free under the schedule that a framework runs it with."""

from dataclasses import dataclass

from pipebench.bench.score import judge
from pipebench.bench.services import HostServices
from pipebench.costs.quantise import NS_PER_S
from pipebench.defaults import Placement, scheduler_for
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.verdict import Verdict
from pipebench.formats.frameworks.arrangement import Arrangement


@dataclass(frozen=True, slots=True)
class Prediction:
    """seconds: of one mini-batch, simulated. free_bytes: on the fullest device."""

    scheduler: str
    schedule: Schedule
    verdict: Verdict
    seconds: float
    free_bytes: int

    @property
    def fits(self) -> bool:
        """Whether the check accepts plan and schedule."""
        return self.verdict.status == "valid"


def framework_scheduler(made: Arrangement) -> str:
    """What frameworks run such stages under."""
    placement: Placement = "apart" if made.virtual == 1 else "v" if made.stands("v") else "in-turn"
    return scheduler_for(made.problem.regime.mode, placement)


def predict(
    services: HostServices, problem: Problem, plan: Plan, scheduler: str, schedule: Schedule | None = None
) -> Prediction:
    """schedule None: made by the scheduler. Raises PipebenchError where there is none or the plan is not valid."""
    plan = plan.without_in_flight()
    ordered = services.schedule(scheduler, problem, plan) if schedule is None else schedule
    verdict = judge(problem, plan, ordered)
    if not verdict.peak_bytes:
        reason = verdict.witness.message if verdict.witness else verdict.reason
        raise PipebenchError(f"the plan is not valid under {scheduler}: {reason}")
    trace = services.simulate(problem, plan, ordered)
    if trace.period_ns is not None:
        time_ns = trace.period_ns * problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
    else:
        time_ns = trace.total_ns
    free = min(problem.cluster.type_of(device).memory_bytes - peak for device, peak in verdict.peak_bytes.items())
    return Prediction(scheduler, ordered, verdict, time_ns / NS_PER_S, free)
