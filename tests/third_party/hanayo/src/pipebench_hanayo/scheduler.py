"""Hanayo: a pipeline that runs up and down the devices in waves, without a second copy of the weights."""

from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, BACKWARD, FORWARD, FiniteSchedule, Lane
from pipebench.hooks.context import Context

Task = tuple[str, int, int]
"""Kind, stage, micro-batch."""


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """The order of a run in which each task takes one slot and every device does what is ready.

    Backwards come first, then the forward that is furthest on its way. At most as many micro-batches as there are
    devices are on their way, so that a device never holds more than 1F1B's first one does.

    Raises UnsupportedProblem for stages of several micro-batches, InvalidValue where it does not divide.
    """
    sizes = {stage.micro_batch for stage in plan.stages}
    if len(sizes) > 1:
        raise UnsupportedProblem(f"hanayo has one micro-batch for all stages, these have {sorted(sizes)}")
    count, left = divmod(problem.mini_batch, plan.stages[0].micro_batch * plan.all_pipelines)
    if left:
        raise InvalidValue(f"micro-batches of {sizes} do not divide a mini-batch of {problem.mini_batch}")
    sets, lane_of = lanes_of(plan)
    orders = _run(len(sets), lane_of, count)
    context.count("tasks", sum(map(len, orders)))
    return FiniteSchedule(lanes=tuple(_lane(problem, plan, order) for order in orders))


def _run(devices: int, lane_of: list[int], count: int) -> list[list[Task]]:
    """The tasks of each device in the order of the run. lane_of: the device of each stage."""
    orders: list[list[Task]] = [[] for _ in range(devices)]
    ready: list[set[Task]] = [set() for _ in range(devices)]
    entered = min(count, devices)
    ready[lane_of[0]] |= {(FORWARD, 0, number) for number in range(entered)}
    while any(ready):
        ended = []
        for device, waiting in enumerate(ready):
            if waiting:
                task = min(waiting, key=_turn)
                waiting.remove(task)
                orders[device].append(task)
                ended.append(task)
        for kind, stage, number in ended:
            behind = _behind(kind, stage, number, len(lane_of))
            if behind is None and entered < count:
                behind, entered = (FORWARD, 0, entered), entered + 1
            if behind is not None:
                ready[lane_of[behind[1]]].add(behind)
    return orders


def _turn(task: Task) -> tuple[bool, int, int]:
    """Backwards first, by micro-batch; of the forwards the one that is furthest on its way."""
    kind, stage, number = task
    return (False, number, -stage) if kind == BACKWARD else (True, -stage, number)


def _behind(kind: str, stage: int, number: int, stages: int) -> Task | None:
    """What a task lets begin; None behind the last backward of a micro-batch."""
    if kind == FORWARD:
        return (FORWARD, stage + 1, number) if stage + 1 < stages else (BACKWARD, stage, number)
    return (BACKWARD, stage - 1, number) if stage else None


def _lane(problem: Problem, plan: Plan, order: list[Task]) -> Lane:
    """The tasks of a device, then the all-reduces of its stages, where there are any."""
    model = CostModel(problem)
    stages = sorted({stage for _, stage, _ in order}, reverse=True)
    order = [*order, *((ALL_REDUCE, s, 0) for s in stages if model.needs_update_task(plan.stages[s], plan))]
    return Lane(
        devices=plan.stages[stages[0]].devices,
        stage=tuple(stage for _, stage, _ in order),
        micro_batch=tuple(number for _, _, number in order),
        kinds="".join(kind for kind, _, _ in order),
    )
