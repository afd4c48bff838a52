"""Where stages stand: device ids of consecutive stages, lanes, and copies of a pipeline."""

from collections.abc import Sequence
from math import lcm

import numpy as np

from pipebench.costs.messages import Latest, levels_crossed
from pipebench.defaults import ONE_F_ONE_B, ROUND_ROBIN
from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, UnsupportedProblem
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


def lanes_in_turn(plan: Plan) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """The device sets of the plan, and for each stage the set of each of its turns.

    Micro-batch i of stage s is on set of_stage[s][i % stage.turns]. Sets hold ascending ids and stand in the order
    of their first stage.
    Raises InvalidValue for two sets that share some devices but not all.
    """
    sets: dict[tuple[int, ...], int] = {}
    listed: list[tuple[int, ...]] = []
    of_stage: list[tuple[int, ...]] = []
    holder: dict[int, int] = {}
    for position, stage in enumerate(plan.stages):
        lanes: list[int] = []
        for each in stage.device_sets:
            devices = tuple(sorted(each))
            lane = sets.setdefault(devices, len(listed))
            if lane == len(listed):
                listed.append(devices)
            lanes.append(lane)
            for device in devices:
                other = holder.setdefault(device, lane)
                if other != lane:
                    raise InvalidValue(
                        f"stage {position} on devices {devices} shares device {device} with devices "
                        f"{listed[other]}",
                        "stages share either all of their devices or none",
                    )
        of_stage.append(tuple(lanes))
    return listed, of_stage


def lanes_of(plan: Plan) -> tuple[list[tuple[int, ...]], list[int]]:
    """The device sets of a plan whose replicas work at the same time, and the set of each stage.

    Raises InvalidValue as `lanes_in_turn`, UnsupportedProblem where replicas take micro-batches in turn.
    """
    for position, stage in enumerate(plan.stages):
        if stage.turns > 1:
            raise UnsupportedProblem(
                f"the {stage.turns} replicas of stage {position} take micro-batches in turn; here they share each",
                f"use the scheduler {ONE_F_ONE_B} (sync) or {ROUND_ROBIN} (async), or a plan of another planner",
            )
    sets, of_stage = lanes_in_turn(plan)
    return sets, [lanes[0] for lanes in of_stage]


def in_place(one: Stage, other: Stage) -> bool:
    """Whether two stages run on the same devices, in any order, and pass a micro-batch on where it is."""
    if one.turns != other.turns or sorted(one.devices) != sorted(other.devices):
        return False
    return one.turns == 1 or all(
        sorted(a) == sorted(b) for a, b in zip(one.device_sets, other.device_sets, strict=True)
    )


MOST_TURNS = 1024
"""The most turns of two stages that exchange messages, before they meet again as in the beginning."""


def turns_between(one: Stage, other: Stage) -> int:
    """After how many micro-batches two stages meet on the same devices again; at least 1, at most MOST_TURNS.

    Raises UnsupportedProblem where that takes more.
    """
    together = lcm(one.turns, other.turns)
    if together > MOST_TURNS:
        raise UnsupportedProblem(
            f"stages of {one.turns} and {other.turns} replicas in turn repeat after {together} micro-batches, "
            f"at most {MOST_TURNS} are computed",
            "choose numbers of replicas with a smaller common multiple",
        )
    return together


def devices_of_copies(plan: Plan, devices: Sequence[int]) -> list[int]:
    """The ids of `devices` in every copy: the ids in the first copy, shifted by the number of its devices."""
    shift = plan.copy_size if plan.copies > 1 else 0
    return [device + copy * shift for copy in range(plan.copies) for device in devices]


def in_copy(plan: Plan, devices: Sequence[int], copy: int) -> tuple[int, ...]:
    """The ids of `devices` in one copy."""
    shift = copy * plan.copy_size if copy else 0
    return tuple(device + shift for device in devices)


def copies_that_differ(cluster: Cluster, plan: Plan) -> tuple[int, ...]:
    """One copy of each kind, by number: of those whose devices are joined by the same link levels the first one.

    Copies that stand inside a node and copies astride two of them differ. Those that cross the most levels come
    first. Plans whose copies fill nodes, or are filled by them, have one kind.
    """
    return _standing.get(cluster, plan, lambda: kinds_of_copies(cluster, _used(plan), plan.copies))


_standing: Latest[tuple[int, ...]] = Latest()


def _used(plan: Plan) -> list[int]:
    return sorted({device for stage in plan.stages for device in stage.devices})


def kinds_of_copies(cluster: Cluster, used: Sequence[int], copies: int) -> tuple[int, ...]:
    """As `copies_that_differ`. used: the ids of the first copy, ascending."""
    if copies == 1 or len(used) == 1 or len(cluster.levels) == 1:
        return (0,)
    ids = np.array(used) + len(used) * np.arange(copies)[:, None]
    crossed = np.concatenate([np.diff(ids // level.group) > 0 for level in cluster.levels[:-1]], axis=1)
    _, first = np.unique(crossed, axis=0, return_index=True)
    return tuple(sorted(first.tolist(), key=lambda copy: (-int(crossed[copy].sum()), copy)))


def in_farthest_copy(cluster: Cluster, plan: Plan, devices: Sequence[int]) -> tuple[int, ...]:
    """The ids of `devices` in the copy where most link levels lie between them."""
    kinds = copies_that_differ(cluster, plan)
    return in_copy(plan, devices, farthest(cluster, kinds, _used(plan), devices))


def farthest(cluster: Cluster, kinds: Sequence[int], used: Sequence[int], devices: Sequence[int]) -> int:
    """The copy in which most link levels lie between these devices of the first one.

    kinds: those that `kinds_of_copies` gives. used: the ids of the first copy.
    """
    if len(kinds) == 1:
        return kinds[0]
    low, high = min(devices), max(devices)
    shifts = {copy: copy * len(used) for copy in kinds}
    return max(
        kinds, key=lambda copy: len(levels_crossed(cluster.levels, low + shifts[copy], high + shifts[copy]))
    )


def micro_batches_of(problem: Problem, plan: Plan, stage: Stage) -> int:
    """Micro-batches that a stage of one pipeline runs for one weight update."""
    return problem.mini_batch // plan.all_pipelines // stage.micro_batch
