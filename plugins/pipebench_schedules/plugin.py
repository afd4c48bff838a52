"""What this plugin offers."""

from typing import Literal

from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import ScheduleCapabilities, Scheduler

PIPEBENCH_API = 1


class OneFOneBOptions(Value, frozen=True, kw_only=True):
    """warmup: micro-batches that a stage runs ahead of the next one; '+2' hides transfers, at more memory."""

    warmup: Literal["+1", "+2"] = "+1"


@hookimpl
def pipebench_schedulers() -> tuple[Scheduler, ...]:
    """gpipe, 1f1b and 1f1b*."""
    return (
        Scheduler(
            name="gpipe",
            summary="all forwards, then all backwards, of a mini-batch",
            load="pipebench_schedules.gpipe:schedule",
            reference="Huang et al. 2019, GPipe, section 2.3",
            capabilities=ScheduleCapabilities(per_stage_micro_batch=True),
        ),
        Scheduler(
            name="1f1b",
            summary="forwards and backwards in turn after a warm-up (kFkB), on any graph of stages",
            load="pipebench_schedules.one_f_one_b:schedule",
            options=OneFOneBOptions,
            reference="Narayanan et al. 2019, PipeDream; Jeon et al. 2025, GraphPipe, section 4.3",
            deviations=("warm-up of stages with different micro-batches by a rule that is reconstructed",),
            capabilities=ScheduleCapabilities(per_stage_micro_batch=True),
        ),
        Scheduler(
            name="1f1b*",
            summary="periodic pattern of least memory for a chain of stages",
            load="pipebench_schedules.one_f_one_b_star:schedule",
            reference="Beaumont, Eyraud-Dubois and Shilova 2021, MadPipe, section 4.1",
            capabilities=ScheduleCapabilities(produces="periodic", stage_graphs="chain"),
        ),
    )
