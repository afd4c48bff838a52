"""What this package offers."""

from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import ScheduleCapabilities, Scheduler

PIPEBENCH_API = 1


@hookimpl
def pipebench_schedulers() -> tuple[Scheduler, ...]:
    """The scheduler `hanayo`."""
    return (
        Scheduler(
            name="hanayo",
            summary="stages that sweep over the devices in waves: a bubble of two chunks for each device but one",
            load="pipebench_hanayo.scheduler:schedule",
            reference="Liu et al. 2023, Hanayo: Harnessing Wave-like Pipeline Parallelism, SC '23",
            deviations=("orders come from a run in equal slots, not from the paper's action lists",),
            capabilities=ScheduleCapabilities(placements=("wave",), stage_graphs="chain"),
        ),
    )
