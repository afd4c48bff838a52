"""Which plans a scheduler or an executor takes, by the placements and replicas that its capabilities declare."""

from collections.abc import Sequence

from pipebench.documents.units import quantity
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.placement import PlacementKind, placement_kind_of, stands_as
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import FiniteSchedule, Schedule
from pipebench.hooks.descriptors import Component, Executor, ExecutorCapabilities, ScheduleCapabilities, Scheduler

_STAGES: dict[PlacementKind, str] = {
    "apart": "--vpp 1",
    "in-turn": "--vpp 2 or more",
    "v": "--vpp 2",
    "wave": "--vpp 2 or more",
    "mirrored": "an even --pp",
}
"""What to type for stages that stand so; `listed` stages stand in any way."""


def placements_of(capabilities: ScheduleCapabilities | ExecutorCapabilities) -> tuple[PlacementKind, ...]:
    """The placements that a component takes; the deprecated `shared_devices` counts as well."""
    if isinstance(capabilities, ScheduleCapabilities):
        listed: tuple[PlacementKind, ...] = ("listed",) if capabilities.shared_devices else ()
        return tuple(dict.fromkeys((*capabilities.placements, *listed)))
    return capabilities.placements if capabilities.shared_devices else ("apart",)


def takes(capabilities: ScheduleCapabilities | ExecutorCapabilities, plan: Plan) -> bool:
    """Whether a component of these capabilities takes the placement and the replicas of a plan."""
    return takes_replicas(capabilities, plan) and takes_placement(placements_of(capabilities), plan)


def takes_replicas(capabilities: ScheduleCapabilities | ExecutorCapabilities, plan: Plan) -> bool:
    """Whether a component takes the way in which replicas of the plan share micro-batches."""
    if isinstance(capabilities, ScheduleCapabilities):
        return ("round_robin" if plan.takes_turns else "split") in capabilities.replicas
    return capabilities.round_robin or not plan.takes_turns


def takes_placement(placements: Sequence[PlacementKind], plan: Plan) -> bool:
    """Whether a component of these placements takes the plan.

    One of the placements must hold for the plan; `listed` holds for every plan. A plan of several pipelines also
    needs `mirrored`, because it has weights in several places.
    """
    devices = [stage.devices for stage in plan.stages]
    if plan.pipelines > 1 and "mirrored" not in placements:
        return False
    return any(stands_as(kind, devices, plan.pipelines) for kind in placements)


def refuse_placement(label: str, component: Component, plan: Plan, schedule: Schedule | None = None) -> None:
    """Raise UnsupportedProblem for a plan whose placement or replicas the scheduler or executor does not take.

    label: its name, for the message.
    schedule: the schedule that an executor is to run; one with pairs needs the capability `pairs`.
    """
    assert isinstance(component, Scheduler | Executor)
    capabilities = component.capabilities
    placements = placements_of(capabilities)
    if not takes_replicas(capabilities, plan):
        raise UnsupportedProblem(
            f"{label} takes replicas that share each micro-batch; those of this plan take micro-batches in turn"
            if plan.takes_turns
            else f"{label} takes replicas that take micro-batches in turn; those of this plan share each of them",
            "use another scheduler or executor, see `pipebench list`",
        )
    if not takes_placement(placements, plan):
        devices = [stage.devices for stage in plan.stages]
        kind = placement_kind_of(devices, plan.pipelines)
        sets = len({tuple(sorted(each)) for each in devices})
        typed = " or ".join(dict.fromkeys(_STAGES[each] for each in placements if each in _STAGES))
        raise UnsupportedProblem(
            f"{label} takes the placement {_join_kinds(placements)}; this plan has {kind}: "
            f"{quantity(len(plan.stages), 'stage')} on {quantity(sets, 'device set')}"
            + (f", {plan.pipelines} pipelines" if plan.pipelines > 1 else ""),
            f"type {typed}, with a planner that places stages so, or name another component" if typed else None,
        )
    if isinstance(schedule, FiniteSchedule) and not capabilities.pairs:
        for lane in schedule.lanes:
            if lane.together:
                raise UnsupportedProblem(
                    f"{label} runs one task at a time; the schedule runs a forward and a backward at once on "
                    f"devices {list(lane.devices)}",
                    "use a schedule without pairs, or another executor",
                )


def _join_kinds(placements: Sequence[PlacementKind]) -> str:
    return " or ".join(placements) or "none"
