"""Where stages stand: device ids of consecutive stages, lanes, and copies of a pipeline."""

from collections.abc import Sequence

from pipebench.domain.errors import InfeasibleProblem, InvalidValue
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem


def place(counts: Sequence[int], devices: int) -> tuple[tuple[int, ...], ...]:
    """Consecutive ids 0, 1, … for stages that need `counts` devices each, in the order given.

    Raises InfeasibleProblem when they need more than there are.
    """
    if sum(counts) > devices:
        raise InfeasibleProblem(f"the stages need {sum(counts)} devices, there are {devices}")
    placed: list[tuple[int, ...]] = []
    first = 0
    for count in counts:
        placed.append(tuple(range(first, first + count)))
        first += count
    return tuple(placed)


def lanes_of(plan: Plan) -> tuple[list[tuple[int, ...]], list[int]]:
    """The device sets of the plan and the set of each stage.

    Sets hold ascending ids and stand in the order of their first stage.
    Raises InvalidValue for two sets that share some devices but not all.
    """
    sets: list[tuple[int, ...]] = []
    of_stage: list[int] = []
    holder: dict[int, int] = {}
    for position, stage in enumerate(plan.stages):
        devices = tuple(sorted(stage.devices))
        if devices not in sets:
            sets.append(devices)
        lane = sets.index(devices)
        of_stage.append(lane)
        for device in devices:
            other = holder.setdefault(device, lane)
            if other != lane:
                raise InvalidValue(
                    f"stage {position} on devices {devices} shares device {device} with devices {sets[other]}",
                    "stages share either all of their devices or none",
                )
    return sets, of_stage


def in_place(one: Stage, other: Stage) -> bool:
    """Whether two stages run on the same devices, in any order."""
    return one.devices == other.devices or sorted(one.devices) == sorted(other.devices)


def devices_of_copies(plan: Plan, devices: Sequence[int]) -> list[int]:
    """The ids of `devices` in every copy: the ids in the first copy, shifted by the number of its devices."""
    shift = len({device for stage in plan.stages for device in stage.devices})
    return [device + copy * shift for copy in range(plan.copies) for device in devices]


def micro_batches_of(problem: Problem, plan: Plan, stage: Stage) -> int:
    """Micro-batches that a stage of one pipeline runs for one weight update."""
    return problem.mini_batch // plan.all_pipelines // stage.micro_batch
