"""Lanes: each the device set of the stages that it runs, and no device in two."""

from collections.abc import Iterable, Sequence

from pipebench.domain.plan import Plan
from pipebench.domain.verdict import Witness


def wrong_lane(plan: Plan, lanes: Sequence[tuple[Sequence[int], Iterable[int]]]) -> Witness | None:
    """The first lane that shares a device with another, or runs a stage of other devices.

    lanes: for each its device ids and the stages that it runs.
    """
    owner: dict[int, int] = {}
    for number, (devices, stages) in enumerate(lanes):
        for device in devices:
            if device in owner:
                message = f"device {device} is in lanes {owner[device]} and {number}"
                return Witness(rule="shape", message=message, device=device)
            owner[device] = number
        for stage in sorted(set(stages)):
            if 0 <= stage < len(plan.stages) and sorted(plan.stages[stage].devices) != sorted(devices):
                wanted = plan.stages[stage].devices
                message = f"lane {number} of devices {tuple(devices)} runs stage {stage} of devices {wanted}"
                return Witness(rule="shape", message=message, stage=stage)
    return None
