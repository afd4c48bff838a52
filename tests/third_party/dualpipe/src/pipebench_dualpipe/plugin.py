"""What this package offers."""

from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import ScheduleCapabilities, Scheduler

PIPEBENCH_API = 1


@hookimpl
def pipebench_schedulers() -> tuple[Scheduler, ...]:
    """The scheduler `dualpipe`."""
    return (
        Scheduler(
            name="dualpipe",
            summary="two pipelines in opposite directions, forwards of one at once with backwards of the other",
            load="pipebench_dualpipe.scheduler:schedule",
            reference="DeepSeek-AI 2024, DeepSeek-V3 Technical Report, section 3.2.1 and table 2",
            deviations=("what a pair of tasks hides is the problem's overlap, the same on every device",),
            capabilities=ScheduleCapabilities(placements=("mirrored",), stage_graphs="chain", pairs=True),
        ),
    )
