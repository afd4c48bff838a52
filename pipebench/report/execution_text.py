"""A simulated and a measured run of one plan, one above the other."""

from collections.abc import Iterator

from pipebench.bench.execution import Execution
from pipebench.domain.trace import Trace
from pipebench.report.gantt.gantt import gantt
from pipebench.report.gantt.text import legend, timeline
from pipebench.report.units import percent, seconds

SHOWN_PERIODS = 12


def execution_lines(execution: Execution, columns: int) -> Iterator[str]:
    """Seconds of a mini-batch and their distance, both timelines on one scale, and the stages."""
    yield (
        f"simulated {seconds(execution.simulated_s)}, measured {seconds(execution.measured_s)} a mini-batch: "
        f"the simulation is {percent(execution.error)} off"
    )
    yield (
        f"with the measured times of its tasks the simulation takes {seconds(execution.replayed_s)}: "
        f"{percent(execution.replayed_error)} off, in messages, all-reduces and idle time"
    )
    until_ns = max(_shown(execution.simulated), _shown(execution.measured))
    for name, trace in (("simulated", execution.simulated), ("measured", execution.measured)):
        yield f"{name}:"
        yield from timeline(gantt(trace, until_ns=until_ns), columns)
    yield legend(gantt(execution.measured))
    for each in execution.stages:
        apart = (each.simulated_s - each.measured_s) / each.measured_s if each.measured_s else None
        yield (
            f"stage {each.stage}: forward and backward {seconds(each.simulated_s)} simulated, "
            f"{seconds(each.measured_s)} measured, {percent(apart)}"
        )
    yield from execution.notices


def _shown(trace: Trace) -> int:
    """A whole mini-batch; of a run without end the beginning."""
    return trace.total_ns if trace.period_ns is None else min(trace.total_ns, SHOWN_PERIODS * trace.period_ns)
