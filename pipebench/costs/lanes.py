"""Lanes: the device sets of a plan, each of which runs one task at a time."""

from pipebench.domain.errors import InvalidValue
from pipebench.domain.plan import Plan, Stage


def lanes_of(plan: Plan) -> tuple[list[tuple[int, ...]], list[int]]:
    """The device sets (ascending ids), in order of their first stage, and for each stage its set.

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
    """Whether two stages run on the same devices, in whatever order they list them."""
    return one.devices == other.devices or sorted(one.devices) == sorted(other.devices)
