"""How long the tasks of a trace took, to be simulated with in place of what the cost model says."""

from collections.abc import Mapping

from pipebench.domain.schedule import ALL_REDUCE
from pipebench.domain.trace import Trace

TaskTimes = Mapping[tuple[str, int], int]
"""ns by kind of task (a letter of TASK_KINDS) and stage."""
LONGEST_NS = 2**43
"""Two hours: sums of more would leave the integers that the simulator counts with."""


def mean_task_times(trace: Trace, stages: int) -> TaskTimes:
    """Means over the micro-batches, half up. All-reduces are left out: they are traffic, as messages are.

    stages: of the plan. What a foreign trace says of others, and what ends before it begins, is left out too.
    """
    taken: dict[tuple[str, int], list[int]] = {}
    for stage, kind, start, end in zip(trace.stage, trace.kinds, trace.start_ns, trace.end_ns, strict=True):
        if kind != ALL_REDUCE and 0 <= stage < stages and 0 <= end - start <= LONGEST_NS:
            taken.setdefault((kind, stage), []).append(end - start)
    return {key: (2 * sum(times) + len(times)) // (2 * len(times)) for key, times in taken.items()}
