"""What traces say of the parts of a step, beside the parts of the simulated one."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.bench.traced_step import MeasuredParts, median_iteration
from pipebench.domain.plan import Plan
from pipebench.formats.chrome_trace import RankTrace
from pipebench.simulation.step_parts import MILLION, DeviceParts, Part


@dataclass(frozen=True, slots=True)
class GroupGap:
    """Parts that a trace tells together: ns of one iteration, measured and simulated."""

    parts: tuple[Part, ...]
    measured_ns: int
    simulated_ns: int

    @property
    def ratio(self) -> float | None:
        """Measured over simulated; None where nothing is simulated."""
        return self.measured_ns / self.simulated_ns if self.simulated_ns else None


@dataclass(frozen=True, slots=True)
class RankParts:
    """One rank in its median iteration (of two the shorter one). groups: they add up to the iteration as measured,
    and to the step as simulated.

    kernels_ns, communication_ns: sums over the iteration; exposed_ns: of communication that no kernel covers.
    """

    rank: int
    iteration_ns: int
    groups: tuple[GroupGap, ...]
    kernels_ns: int
    communication_ns: int
    exposed_ns: int


def rank_parts(
    plan: Plan, simulated: Sequence[DeviceParts], traces: Sequence[RankTrace], warmup: int
) -> tuple[RankParts, ...]:
    """The parts of each rank. simulated: of each lane. Rank r runs what device r of the first copy does."""
    devices = sorted({device for stage in plan.stages for device in stage.devices})
    lane_of = {device: lane for lane in simulated for device in lane.devices}
    found = []
    for trace in sorted(traces, key=lambda each: each.rank):
        measured = median_iteration(trace, warmup)
        lane = lane_of[devices[trace.rank % len(devices)]]
        found.append(
            RankParts(
                rank=trace.rank,
                iteration_ns=measured.iteration_ns,
                groups=_groups(measured, lane),
                kernels_ns=measured.kernels_ns,
                communication_ns=measured.communication_ns,
                exposed_ns=measured.exposed_ns,
            )
        )
    return tuple(found)


def _groups(measured: MeasuredParts, simulated: DeviceParts) -> tuple[GroupGap, ...]:
    """The finest parts that the trace tells apart.

    The kernel of a receive runs while it waits, so messages and bubble are one. Where no kernel has the name of an
    optimizer's, it is among the kernels; where groups of ranks are not named, collectives are one.
    """
    ns, work = simulated.ns, measured.work_ns
    parts: list[tuple[tuple[Part, ...], int]] = []
    if work["optimizer"] or not ns["optimizer"]:
        parts += [(("kernels",), work["kernels"]), (("optimizer",), work["optimizer"])]
    else:
        parts += [(("kernels", "optimizer"), work["kernels"])]
    if work["collectives"]:
        together = work["tensor_parallel"] + work["gradients"] + work["collectives"]
        parts += [(("tensor_parallel", "gradients"), together)]
    else:
        parts += [(("tensor_parallel",), work["tensor_parallel"]), (("gradients",), work["gradients"])]
    parts += [(("messages", "bubble"), work["messages"] + measured.idle_ns)]
    return tuple(GroupGap(each, took, sum(ns[part] for part in each)) for each, took in parts)


def known_factors(ranks: Sequence[RankParts], largest: int) -> dict[Part, int]:
    """Factors of what kernels do, in millionths, over all ranks: what the traces settle.

    largest: a factor above it settles nothing: the run is of another device. Communication and idle time are not
    settled by what one rank sees of them: they hold waits for other ranks.
    """
    totals: dict[tuple[Part, ...], tuple[int, int]] = {}
    for each in ranks:
        for group in each.groups:
            before = totals.get(group.parts, (0, 0))
            totals[group.parts] = before[0] + group.measured_ns, before[1] + group.simulated_ns
    found: dict[Part, int] = {}
    for parts, (measured_ns, simulated_ns) in totals.items():
        if set(parts) <= {"kernels", "optimizer"} and 0 < measured_ns <= largest * simulated_ns:
            found |= dict.fromkeys(parts, measured_ns * MILLION // simulated_ns)
    return found
