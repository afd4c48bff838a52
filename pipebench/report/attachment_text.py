"""An attached run as text: the iteration, then each rank, then each stage."""

from collections.abc import Iterator

from pipebench.bench.attachment import Attachment
from pipebench.report.units import percent, seconds


def attachment_lines(attachment: Attachment) -> Iterator[str]:
    """Seconds of a mini-batch beside the simulation, how well the clocks are known, and work by rank."""
    yield (
        f"measured {seconds(attachment.measured_s)} a mini-batch (slowest rank), simulated "
        f"{seconds(attachment.simulated_s)}: the simulation is {percent(attachment.error)} off"
    )
    if attachment.start_skew_s is None:
        yield "clocks: messages do not tie all ranks together"
    else:
        yield f"clocks aligned by messages: ranks begin within {seconds(attachment.start_skew_s)}"
    for rank in attachment.ranks:
        clock = "unknown" if rank.offset_ns is None else f"{rank.offset_ns / 1e3:+.0f} us"
        if rank.offset_ns is not None and rank.rank:
            clock += " (one side only)" if rank.within_ns is None else f" within {rank.within_ns / 1e3:.0f} us"
        apart = (rank.simulated_busy_s - rank.busy_s) / rank.busy_s if rank.busy_s else None
        yield (
            f"rank {rank.rank}: iteration {seconds(rank.iteration_s)}, busy {seconds(rank.busy_s)} "
            f"({seconds(rank.simulated_busy_s)} simulated, {percent(apart)}), clock {clock}"
        )
    for stage in attachment.stages:
        how = "marked tasks" if stage.marked else "work of an iteration over its micro-batches"
        yield (
            f"stage {stage.stage}: a micro-batch takes {seconds(stage.measured_s)} ({seconds(stage.simulated_s)} "
            f"simulated, {percent(stage.error)}); from {how}"
        )
