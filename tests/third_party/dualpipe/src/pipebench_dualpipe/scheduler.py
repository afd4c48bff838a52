"""DualPipe: micro-batches enter at both ends; a device runs a forward and a backward of opposite ones at once."""

from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import (
    ALL_REDUCE,
    BACKWARD,
    FORWARD,
    INPUT_GRADIENT,
    WEIGHT_GRADIENT,
    FiniteSchedule,
    Lane,
)
from pipebench.hooks.context import Context


def schedule(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """The eight phases of DualPipe on each device.

    Raises UnsupportedProblem for an odd number of devices, for less than two micro-batches a device and for stages
    of several micro-batches, InvalidValue where the micro-batch does not divide.
    """
    sizes = {stage.micro_batch for stage in plan.stages}
    if len(sizes) > 1:
        raise UnsupportedProblem(f"dualpipe has one micro-batch for all stages, these have {sorted(sizes)}")
    count, left = divmod(problem.mini_batch, plan.stages[0].micro_batch * plan.all_pipelines)
    if left:
        raise InvalidValue(f"micro-batches of {sizes} do not divide a mini-batch of {problem.mini_batch}")
    devices = plan.pipeline_length
    if devices % 2 or count < devices:
        raise UnsupportedProblem(
            f"dualpipe needs an even number of devices and {devices} micro-batches each way, there are {count}",
            "pin an even --pp, or use a larger mini-batch",
        )
    _, lane_of = lanes_of(plan)
    lanes = []
    for device in range(devices):
        near, far = sorted(
            (stage for stage, lane in enumerate(lane_of) if lane == device), key=lambda s: s % devices
        )
        made = _Order(near, far)
        made.fill(min(device, devices - 1 - device), devices // 2, count)
        lanes.append(made.lane(problem, plan))
    context.count("tasks", sum(len(lane.kinds) for lane in lanes))
    return FiniteSchedule(lanes=tuple(lanes))


class _Order:
    """The tasks of one device. near: its stage of the pipeline that begins at the nearer end; far: the other."""

    def __init__(self, near: int, far: int) -> None:
        self.near, self.far = near, far
        self.tasks: list[tuple[str, int, int]] = []
        self.together: list[int] = []
        self._next: dict[tuple[str, int], int] = {}
        self._owed: list[tuple[int, int]] = []

    def fill(self, place: int, half: int, count: int) -> None:
        """place: devices between this one and the nearer end. half: devices of a half. count: each way."""
        near, far, inner = self.near, self.far, half - place - 1
        for _ in range(2 * inner):
            self.forward(near)
        for _ in range(place + 1):
            self.forward(near)
            self.forward(far)
        for _ in range(inner):
            self.backward(far, split=True)
            self.weight()
            self.forward(far)
        for turn in range(count - 2 * half + place + 1):
            # The innermost devices have nobody to wait for in their first turn: they need not pair.
            self.pair(near, far, at_once=bool(turn or inner))
            self.pair(far, near)
        for _ in range(inner):
            self.backward(far)
            self.pair(far, near)
        for turn in range(2 * (place + 1)):
            self.backward(near if turn % 2 else far, split=turn > place)
        for _ in range(inner):
            self.weight()
            self.backward(near, split=True)
        while self._owed:
            self.weight()

    def _add(self, kind: str, stage: int) -> int:
        number = self._next.get((kind, stage), 0)
        self._next[kind, stage] = number + 1
        self.tasks.append((kind, stage, number))
        return number

    def forward(self, stage: int) -> None:
        """The next forward of a stage."""
        self._add(FORWARD, stage)

    def backward(self, stage: int, split: bool = False) -> None:
        """Its next backward; split: the input gradient alone, the weight gradient is owed."""
        number = self._next.get((BACKWARD, stage), 0)
        self._next[BACKWARD, stage] = number + 1
        self.tasks.append((INPUT_GRADIENT if split else BACKWARD, stage, number))
        if split:
            self._owed.append((stage, number))

    def weight(self) -> None:
        """The weight gradient that is owed longest."""
        self.tasks.append((WEIGHT_GRADIENT, *self._owed.pop(0)))

    def pair(self, forward: int, backward: int, at_once: bool = True) -> None:
        """A forward of one stage and a backward of the other."""
        if at_once:
            self.together.append(len(self.tasks))
        self.forward(forward)
        self.backward(backward)

    def lane(self, problem: Problem, plan: Plan) -> Lane:
        """The lane, with the all-reduces of its stages behind: every device in the order of their operators."""
        model, length = CostModel(problem), plan.pipeline_length
        stages = sorted((self.near, self.far), key=lambda stage: -(stage % length))
        reduced = [s for s in stages if model.needs_update_task(plan.stages[s], plan)]
        tasks = [*self.tasks, *((ALL_REDUCE, stage, 0) for stage in reduced)]
        return Lane(
            devices=plan.stages[self.near].devices,
            stage=tuple(stage for _, stage, _ in tasks),
            micro_batch=tuple(number for _, _, number in tasks),
            kinds="".join(kind for kind, _, _ in tasks),
            together=tuple(self.together),
        )
