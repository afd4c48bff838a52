"""One plan for one framework: its text, what it is worth, and the nearest plan where it cannot be expressed."""

from collections import Counter
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.bench.exports.prediction import Prediction, framework_scheduler, predict
from pipebench.bench.exports.tolerance import Turn, recut, turns, uniform_bounds
from pipebench.bench.services import HostServices
from pipebench.check import require_valid_plan
from pipebench.defaults import LAYOUT_PLANNER, scheduler_for
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.schedule import FiniteSchedule, Schedule
from pipebench.formats.frameworks.arrangement import Arrangement
from pipebench.formats.frameworks.requirements import CannotExpress
from pipebench.formats.frameworks.targets import Target
from pipebench.formats.frameworks.torch_schedule import cells_of, splits_backwards
from pipebench.hooks.manager import Host


@dataclass(frozen=True, slots=True)
class Nearest:
    """A plan that the framework can express; problem: the one that it was made for (synchronous)."""

    problem: Problem
    plan: Plan
    prediction: Prediction


def nearest(services: HostServices, target: Target, problem: Problem, plan: Plan) -> Nearest | None:
    """The best plan with the degrees that most stages have, keeping as many of them as can be; None: there is
    none.
    """
    flushed = problem.regime.mode == "async" and not target.asynchronous
    if flushed:
        problem = replace(problem, regime=replace(problem.regime, mode="sync"))
    for pins in _pins(problem.pins, plan, target.virtual, not flushed):
        asked = replace(problem, pins=pins)
        try:
            made = services.plan(LAYOUT_PLANNER, asked).plan
            arrangement = target.can_express(asked, made)
            prediction = predict(services, asked, made, framework_scheduler(arrangement))
        except PipebenchError:
            continue
        if prediction.fits:
            return Nearest(asked, made, prediction)
    return None


def _pins(said: Pins, plan: Plan, several: bool, sized: bool) -> list[Pins]:
    """From most of the plan's degrees to none but those that the user pinned.

    sized: keep its micro-batch, which without a flush may well be the whole mini-batch. Pinned samples of one
    replica stand for it.
    """
    tensor = _most([stage.tensor_parallel for stage in plan.stages])
    replicas = _most([stage.data_parallel * plan.all_pipelines for stage in plan.stages])
    sets = len({stage.devices for stage in plan.stages})
    free = sized and said.micro_batch_size is None
    micro_batch = _most([stage.micro_batch for stage in plan.stages]) if free else None
    virtual = said.virtual_stages if several else 1
    tries: list[dict[str, int | None]] = [
        {"tensor_parallel": tensor, "data_parallel": replicas, "pipeline": sets, "micro_batch": micro_batch},
        {"tensor_parallel": tensor, "pipeline": sets, "micro_batch": micro_batch},
        {"tensor_parallel": tensor, "pipeline": sets},
        {"tensor_parallel": tensor},
        {},
    ]
    made = []
    for each in tries:
        chosen = {name: value for name, value in each.items() if getattr(said, name) is None}
        made.append(replace(said, **chosen, virtual_stages=virtual))
    return made


def _most(values: list[int]) -> int:
    return Counter(values).most_common(1)[0][0]


@dataclass(frozen=True)
class Export:
    """text: for the framework; schedule: a file beside it, where the framework reads one. uniform: the same
    degrees with equal numbers of layers, None where there are too few. turns: see tolerance. split: the plan's own
    order, where it splits backwards and the block has another.
    """

    target: Target
    made: Arrangement
    text: str
    schedule: bytes | None
    prediction: Prediction
    uniform: Prediction | None
    turns: list[Turn]
    split: Prediction | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the framework cannot express a plan, what the plan takes, and what comes nearest.

    remedy: the options with which it can, None where none alone decides that.
    """

    target: Target
    reason: str
    remedy: str | None
    seconds: float | None
    nearest: Nearest | None


def require_all_devices(planned: PlannedProblem) -> None:
    """Raise PipebenchError for a plan that would leave devices idle in a run, with what to do."""
    cluster, total = planned.problem.cluster, planned.problem.pins.micro_batch
    used, size = planned.plan.devices_used * cluster.rank_count, cluster.accelerators
    if used == size:
        return
    counted = ""
    if total is not None:
        counted = f"--micro-batch {total} counts the samples of all replicas, --micro-batch-size those of one; "
    raise PipebenchError(
        f"the plan uses {used} of {size} devices, {size - used} would stand idle",
        f"{counted}plan with other degrees, with -n {used}, or export with --allow-idle",
        ExitCode.CONDITION_FAILED,
    )


def export(
    host: Host, planned: PlannedProblem, target: Target, schedule_name: str, keep_order: bool = False
) -> Export | Refusal:
    """The plan in the framework's words. schedule_name: of the schedule file, as the text refers to it.

    keep_order: the plan's own schedule stands; else one of full backwards takes its place where the framework does
    not run split ones and is priced. Raises PipebenchError for a plan that is not valid.
    """
    services = HostServices(host)
    problem, plan = planned.problem, planned.plan
    require_valid_plan(problem, plan)
    try:
        made = target.can_express(problem, plan)
    except CannotExpress as error:
        seconds, found = _seconds(services, planned), nearest(services, target, problem, plan)
        return Refusal(target, error.message, error.hint, seconds, found)
    name = framework_scheduler(made)
    own: Schedule | None = planned.schedule if target.schedule_file else None
    prediction = predict(services, problem, plan, planned.scheduler or name if own else name, own)
    split = None
    if target.full_backwards(problem) and not keep_order and splits_backwards(prediction.schedule):
        whole = _fitting(services, problem, plan, name)
        if whole is not None and not splits_backwards(whole.schedule):
            prediction, split = whole, prediction
    schedule = prediction.schedule
    cells = None
    text = target.write(made, schedule_name)
    if target.schedule_file and made.pipeline > 1 and isinstance(schedule, FiniteSchedule):
        cells = cells_of(plan, schedule)
        if target.split_backwards and splits_backwards(schedule):
            text += f"{target.comment} {target.split_backwards}\n"
    bounds = uniform_bounds(made)
    uniform = None
    if bounds is not None:
        try:
            uniform = predict(services, problem, recut(made, bounds), name)
        except PipebenchError:
            uniform = None
    return Export(
        target=target,
        made=made,
        text=text,
        schedule=cells,
        prediction=prediction,
        uniform=uniform,
        turns=turns(services, made),
        split=split,
    )


def _fitting(services: HostServices, problem: Problem, plan: Plan, scheduler: str) -> Prediction | None:
    """The plan under a scheduler, None where that does not order it or it does not fit."""
    try:
        found = predict(services, problem, plan, scheduler)
    except PipebenchError:
        return None
    return found if found.fits else None


def _seconds(services: HostServices, planned: PlannedProblem) -> float | None:
    """What the plan itself takes under its own schedule, None where it has none that runs."""
    in_turn = planned.plan.takes_turns
    name = planned.scheduler or scheduler_for(planned.problem.regime.mode, in_turn=in_turn)
    try:
        return predict(services, planned.problem, planned.plan, name, planned.schedule).seconds
    except PipebenchError:
        return None
