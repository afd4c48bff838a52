"""The plan that comes nearest to one that a framework cannot express, and what it takes."""

from collections import Counter
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.bench.exports.prediction import Prediction, framework_scheduler, predicted
from pipebench.bench.services import HostServices
from pipebench.defaults import LAYOUT_PLANNER
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.formats.frameworks.targets import Target


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
            prediction = predicted(services, asked, made, framework_scheduler(arrangement))
        except PipebenchError:
            continue
        if prediction.fits:
            return Nearest(asked, made, prediction)
    return None


def _pins(said: Pins, plan: Plan, several: bool, sized: bool) -> list[Pins]:
    """From most of the plan's degrees to none but those that the user pinned.

    sized: keep its micro-batch, which without a flush may well be the whole mini-batch.
    """
    tensor = _most([stage.tensor_parallel for stage in plan.stages])
    replicas = _most([stage.data_parallel * plan.all_pipelines for stage in plan.stages])
    sets = len({stage.devices for stage in plan.stages})
    micro_batch = _most([stage.micro_batch for stage in plan.stages]) if sized else None
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
        free = {name: value for name, value in each.items() if getattr(said, name) is None}
        made.append(replace(said, **free, virtual_stages=virtual))
    return made


def _most(values: list[int]) -> int:
    return Counter(values).most_common(1)[0][0]
