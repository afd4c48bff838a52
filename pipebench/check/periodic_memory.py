"""Memory of a periodic schedule over one period in its steady state."""

from collections.abc import Sequence

from pipebench.check.copies import devices_of_copies
from pipebench.check.fit import fit_of, most_over
from pipebench.check.periodic_operations import Operation, Pattern
from pipebench.costs.formula import StageMemory
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.units import exact_bytes
from pipebench.domain.verdict import Verdict, Witness


def periodic_memory(problem: Problem, model: CostModel, plan: Plan, pattern: Pattern) -> Verdict:
    """The peak of each device, and a witness where it exceeds the device.

    What a device holds changes only where one of its own operations starts or ends, and it only grows at a
    start, so the starts are the instants to look at.
    """
    edges = model.messages(plan)
    of_stage = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
    peaks: dict[int, int] = {}
    peak_operation: dict[int, Operation] = {}
    for devices in dict.fromkeys(stage.devices for stage in plan.stages):
        stages = [p for p, stage in enumerate(plan.stages) if stage.devices == devices]
        starts = [operation for p in stages for operation in (pattern.forward[p], pattern.backward[p])]
        held = {o.name: bytes_at(o, stages, of_stage, pattern) for o in starts}
        worst = max(starts, key=lambda o: held[o.name])
        for device in devices_of_copies(plan, devices):
            peaks[device], peak_operation[device] = held[worst.name], worst
    fit = fit_of(problem, peaks)
    most = most_over(problem, peaks)
    if most is None:
        return Verdict(status="valid", fit=fit, peak_bytes=peaks)
    device, over = most
    operation = peak_operation[device]
    message = (
        f"device {device} needs {exact_bytes(peaks[device])} when {operation.name} starts, "
        f"{exact_bytes(over)} more than it has"
    )
    witness = Witness(
        rule="memory",
        message=message,
        device=device,
        stage=operation.stage,
        micro_batch=0,
        instant_ns=operation.start % pattern.period,
        bytes_over=over,
    )
    return Verdict(status="invalid", witness=witness, fit=fit, peak_bytes=peaks)


def bytes_at(running: Operation, stages: Sequence[int], of_stage: Sequence[StageMemory], pattern: Pattern) -> int:
    """Bytes on a device of `stages` just after `running` has started."""
    total = of_stage[running.stage].workspace
    for stage in stages:
        live = live_at(pattern.forward[stage].start, pattern.backward[stage].end, running.start, pattern.period)
        if stage == running.stage:
            # A stage whose F and B take no time is still live while it runs.
            live = max(live, 1)
        total += of_stage[stage].at(live)
    return total


def live_at(start: int, end: int, instant: int, period: int) -> int:
    """How many micro-batches i have start + i * period <= instant < end + i * period."""
    return (instant - start) // period - (instant - end) // period
