"""C3: stages stand on device sets as the plan declares (GraphPipe section 4, C3: each on devices of its own)."""

from pipebench.check.copies import devices_of_copies
from pipebench.domain.errors import InvalidValue
from pipebench.domain.placement import pipelines_of_kind, sets_listed, sets_of_stages
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness


def wrong_placement(problem: Problem, plan: Plan) -> Witness | None:
    """The first device used in a way that the plan's placement does not allow.

    Stages share all of their devices, in one order, or none; with `apart` none. Stages of a placement with a rule
    stand where it says. All pipelines stand on the same sets, and the stages that hold the same operators, one in
    each pipeline, on different ones. Copies of the pipelines never share a device.
    """
    del problem
    return (
        _shared_device(plan)
        or _wrong_set(plan)
        or _other_sets(plan)
        or _mirror_in_place(plan)
        or _shared_by_copies(plan)
    )


def _shared_device(plan: Plan) -> Witness | None:
    owner: dict[int, int] = {}
    for position, stage in enumerate(plan.stages):
        for device in stage.devices:
            before = owner.setdefault(device, position)
            if stage.devices.count(device) > 1:
                message = f"stage {position} lists device {device} twice"
            elif before == position or (
                plan.placement != "apart" and plan.stages[before].devices == stage.devices
            ):
                continue
            elif plan.placement != "apart":
                message = f"stages {before} and {position} share device {device} but list different devices"
            else:
                message = f"stages {before} and {position} share device {device}, the plan does not declare it"
            return Witness(rule="C3", message=message, stage=position, device=device)
    return None


def _wrong_set(plan: Plan) -> Witness | None:
    """The first stage that stands elsewhere than the placement says, or a number of stages that it lacks."""
    pipelines = pipelines_of_kind(plan.placement)
    if pipelines not in (None, plan.pipelines):
        message = (
            f"the placement {plan.placement!r} is of {pipelines} pipelines, the plan has {plan.pipelines}"
            if pipelines != 1
            else f"the placement {plan.placement!r} is of one pipeline, the plan has {plan.pipelines}"
        )
        return Witness(rule="C3", message=message)
    if plan.placement == "listed":
        return None
    found = sets_listed([stage.devices for stage in plan.stages])
    try:
        expected = sets_of_stages(plan.placement, max(found) + 1, len(found))
    except InvalidValue as error:
        return Witness(rule="C3", message=str(error))
    for position, (number, wanted) in enumerate(zip(found, expected, strict=True)):
        if number != wanted:
            devices = plan.stages[found.index(wanted)].devices
            message = (
                f"the placement {plan.placement!r} puts stage {position} on set {wanted} (devices {devices}), "
                f"it is on set {number} (devices {plan.stages[position].devices})"
            )
            return Witness(rule="C3", message=message, stage=position, device=plan.stages[position].devices[0])
    return None


def _other_sets(plan: Plan) -> Witness | None:
    """The first stage on a device set that another pipeline does not use."""
    for first in range(0, len(plan.stages), plan.pipeline_length):
        used = {plan.stages[position].devices for position in plan.pipeline_of(first)}
        for position, stage in enumerate(plan.stages):
            if stage.devices not in used:
                message = (
                    f"stage {position} is on devices {stage.devices}, where pipeline "
                    f"{first // plan.pipeline_length} has no stage: pipelines on devices of their own are copies"
                )
                return Witness(rule="C3", message=message, stage=position, device=stage.devices[0])
    return None


def _mirror_in_place(plan: Plan) -> Witness | None:
    """The first stage on the devices of another that holds the same operators."""
    for position in range(plan.pipeline_length):
        first: dict[tuple[int, ...], int] = {}
        for mirror in plan.mirrors(position):
            devices = plan.stages[mirror].devices
            other = first.setdefault(devices, mirror)
            if other != mirror:
                message = (
                    f"stages {other} and {mirror} hold the same operators in two pipelines, "
                    f"and both are on devices {devices}"
                )
                return Witness(rule="C3", message=message, stage=mirror, device=devices[0])
    return None


def _shared_by_copies(plan: Plan) -> Witness | None:
    used = sorted({device for stage in plan.stages for device in stage.devices})
    seen: set[int] = set()
    for device in devices_of_copies(plan, used):
        if device in seen:
            return Witness(rule="C3", message=f"device {device} is in two copies of the pipeline", device=device)
        seen.add(device)
    return None
