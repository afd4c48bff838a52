"""C3: stages partition the devices, unless the plan says that they share (GraphPipe section 4, C3)."""

from pipebench.check.copies import devices_of_copies
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness


def shared_device(problem: Problem, plan: Plan) -> Witness | None:
    """The first device used twice; with `shared_devices` stages may share when they list identical devices.

    Copies of the pipeline never share a device.
    """
    del problem
    owner: dict[int, int] = {}
    for position, stage in enumerate(plan.stages):
        for device in stage.devices:
            before = owner.setdefault(device, position)
            if stage.devices.count(device) > 1:
                message = f"stage {position} lists device {device} twice"
            elif before == position or (plan.shared_devices and plan.stages[before].devices == stage.devices):
                continue
            elif plan.shared_devices:
                message = f"stages {before} and {position} share device {device} but list different devices"
            else:
                message = f"stages {before} and {position} share device {device}, the plan does not declare it"
            return Witness(rule="C3", message=message, stage=position, device=device)
    seen: set[int] = set()
    for device in devices_of_copies(plan, sorted(owner)):
        if device in seen:
            return Witness(rule="C3", message=f"device {device} is in two copies of the pipeline", device=device)
        seen.add(device)
    return None
