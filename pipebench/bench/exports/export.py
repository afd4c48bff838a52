"""One plan for one framework: the text, what it is worth, and how sure that is."""

from dataclasses import dataclass

from pipebench.bench.exports.nearest import Nearest, nearest
from pipebench.bench.exports.prediction import Prediction, framework_scheduler, predicted
from pipebench.bench.exports.recut import recut, uniform_bounds
from pipebench.bench.exports.tolerance import Turn, turns
from pipebench.bench.services import HostServices
from pipebench.defaults import scheduler_for
from pipebench.domain.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.schedule import FiniteSchedule, Schedule
from pipebench.formats.frameworks.arrangement import Arrangement, CannotExpress
from pipebench.formats.frameworks.targets import Target
from pipebench.formats.torch_schedule import cells_of
from pipebench.hooks.manager import Host


@dataclass(frozen=True)
class Export:
    """text: for the framework; schedule: a file beside it, where the framework reads one. uniform: the same
    degrees with equal numbers of layers, None where there are too few. turns: see tolerance.
    """

    target: Target
    made: Arrangement
    text: str
    schedule: bytes | None
    prediction: Prediction
    uniform: Prediction | None
    turns: list[Turn]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the framework cannot express a plan, what the plan takes, and what comes nearest."""

    target: Target
    reason: str
    seconds: float | None
    nearest: Nearest | None


def export(host: Host, planned: PlannedProblem, target: Target, schedule_name: str) -> Export | Refusal:
    """The plan in the framework's words. schedule_name: of the schedule file, as the text refers to it.

    Raises PipebenchError for a plan that is not valid.
    """
    services = HostServices(host)
    problem, plan = planned.problem, planned.plan
    try:
        made = target.can_express(problem, plan)
    except CannotExpress as error:
        return Refusal(
            target, error.message, _seconds(services, planned), nearest(services, target, problem, plan)
        )
    name = framework_scheduler(made)
    own: Schedule | None = planned.schedule if target.schedule_file else None
    prediction = predicted(services, problem, plan, planned.scheduler or name if own else name, own)
    schedule = prediction.schedule
    bounds = uniform_bounds(made)
    uniform = None
    if bounds is not None:
        try:
            uniform = predicted(services, problem, recut(made, bounds), name)
        except PipebenchError:
            uniform = None
    return Export(
        target=target,
        made=made,
        text=target.write(made, schedule_name),
        schedule=cells_of(plan, schedule)
        if target.schedule_file and isinstance(schedule, FiniteSchedule)
        else None,
        prediction=prediction,
        uniform=uniform,
        turns=turns(services, made),
    )


def _seconds(services: HostServices, planned: PlannedProblem) -> float | None:
    """What the plan itself takes under its own schedule, None where it has none that runs."""
    name = planned.scheduler or scheduler_for(planned.problem.regime.mode)
    try:
        return predicted(services, planned.problem, planned.plan, name, planned.schedule).seconds
    except PipebenchError:
        return None
