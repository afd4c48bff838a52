"""Memory over time of a trace against the devices."""

from pipebench.check.copies import devices_of_copies
from pipebench.check.fit import fit_of, most_over
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.trace import Trace
from pipebench.domain.units import exact_bytes, exact_ns
from pipebench.domain.verdict import Verdict, Witness


def trace_memory(problem: Problem, plan: Plan, trace: Trace) -> Verdict:
    """The peak of each device that has a timeline, and the first instant at which one exceeds its device.

    The other copies of a pipeline, when the trace does not tell of them, hold what the first one holds.
    """
    peaks: dict[int, int] = {}
    for timeline in trace.memory:
        witness = None
        if not 0 <= timeline.device < problem.cluster.size:
            witness = Witness(rule="shape", message=f"memory of device {timeline.device}, which is not there")
        elif timeline.device in peaks:
            witness = Witness(rule="shape", message=f"device {timeline.device} has two memory timelines")
        elif len(timeline.time_ns) != len(timeline.bytes) or list(timeline.time_ns) != sorted(timeline.time_ns):
            witness = Witness(rule="shape", message=f"memory of device {timeline.device}: instants do not ascend")
        if witness is not None:
            return Verdict(status="invalid", witness=witness)
        peaks[timeline.device] = timeline.peak_bytes
    for timeline in trace.memory:
        for device in devices_of_copies(plan, [timeline.device]):
            peaks.setdefault(device, timeline.peak_bytes)
    fit = fit_of(problem, peaks) if peaks else None
    worst = most_over(problem, peaks)
    if worst is None:
        return Verdict(status="valid", fit=fit, peak_bytes=peaks)
    device, over = worst
    timeline = next(t for t in trace.memory if t.peak_bytes == peaks[device])
    instant = timeline.time_ns[timeline.bytes.index(peaks[device])]
    message = (
        f"device {device} holds {exact_bytes(peaks[device])} at {exact_ns(instant)}, "
        f"{exact_bytes(over)} more than it has"
    )
    witness = Witness(rule="memory", message=message, device=device, instant_ns=instant, bytes_over=over)
    return Verdict(status="invalid", witness=witness, fit=fit, peak_bytes=peaks)
