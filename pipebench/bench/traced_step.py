"""One iteration of a traced rank: its length, and where its time went."""

from dataclasses import dataclass

from pipebench.domain.errors import PipebenchError
from pipebench.formats.chrome_trace import COMMUNICATION, WORK, RankTrace, TraceWork
from pipebench.formats.spans import SpanSums


@dataclass(frozen=True, slots=True)
class MeasuredParts:
    """An iteration of a trace. work_ns: by kind of work, no time twice; idle_ns: the rest of it.

    communication_ns: of communication, whether a kernel covers it or not.
    """

    iteration_ns: int
    work_ns: dict[TraceWork, int]
    communication_ns: int

    @property
    def idle_ns(self) -> int:
        """ns in which the device does nothing."""
        return self.iteration_ns - sum(self.work_ns.values())

    @property
    def kernels_ns(self) -> int:
        """ns of kernels, those of the optimizer among them."""
        return self.work_ns["kernels"] + self.work_ns["optimizer"]

    @property
    def exposed_ns(self) -> int:
        """ns of communication that no kernel covers."""
        return sum(self.work_ns[kind] for kind in COMMUNICATION)


def median_iteration(trace: RankTrace, warmup: int) -> MeasuredParts:
    """The parts of the median iteration after the warm-up, of two the shorter one.

    Raises PipebenchError where no iteration is left.
    """
    kept = sorted(trace.steps[warmup:], key=lambda step: step[1] - step[0])
    if not kept:
        raise PipebenchError(f"a rank has {len(trace.steps)} iterations, {warmup} are warm-up", "give --warmup 0")
    start, end = kept[(len(kept) - 1) // 2]
    return MeasuredParts(
        iteration_ns=end - start,
        work_ns={kind: SpanSums(trace.work.get(kind, ())).within(start, end) for kind in WORK},
        communication_ns=SpanSums(trace.communication).within(start, end),
    )
