"""An attached run as people read it: the difference, ranks and stages, and which part would explain it."""

from collections.abc import Iterator

from pipebench.bench.attachment.attachment import Attachment
from pipebench.bench.attachment.explanation import LARGEST_FACTOR, Explanation, PartAlone
from pipebench.bench.attachment.rank_parts import RankParts
from pipebench.costs.quantise import NS_PER_S
from pipebench.documents.units import three_digits
from pipebench.report.text.plans import span
from pipebench.report.units import percent, seconds
from pipebench.simulation.step_parts import Part

WORDS: dict[Part, str] = {
    "kernels": "kernels",
    "tensor_parallel": "tensor-parallel communication",
    "messages": "point-to-point messages",
    "gradients": "gradient reduction",
    "optimizer": "optimizer",
    "bubble": "bubble",
}


def attachment_lines(attachment: Attachment) -> Iterator[str]:
    """Seconds of a mini-batch beside the simulation, how well the clocks are known, and work by rank."""
    yield (
        f"measured {seconds(attachment.measured_s)} a mini-batch ({attachment.source}), simulated "
        f"{seconds(attachment.simulated_s)}: the simulation is {percent(attachment.error)} off"
    )
    if not attachment.ranks:
        pass
    elif attachment.start_skew_s is None:
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
    for each in attachment.rank_parts:
        yield _rank_parts_line(each)
    if attachment.explanation is None:
        yield f"not explained: {attachment.unexplained}"
    else:
        yield from explanation_lines(attachment.explanation)


def _rank_parts_line(rank: RankParts) -> str:
    """What of an iteration is more or less than simulated; the differences add up to that of the iteration."""
    said = []
    for group in rank.groups:
        if group.measured_ns or group.simulated_ns:
            name = " and ".join(WORDS[part] for part in group.parts)
            apart_ns = group.measured_ns - group.simulated_ns
            sign = "+" if apart_ns >= 0 else "-"
            said.append(
                f"{name} {_time(group.measured_ns)} ({_time(group.simulated_ns)} simulated, "
                f"{sign}{_time(abs(apart_ns))})"
            )
    return f"rank {rank.rank}, an iteration of {_time(rank.iteration_ns)}: {'; '.join(said)}"


def explanation_lines(explained: Explanation) -> Iterator[str]:
    """What the simulated step consists of, and by what factor each part alone would explain the difference."""
    if explained.given:
        known = " and ".join(f"{WORDS[part]} {three_digits(factor)}" for part, factor in explained.given.items())
        yield f"as the traces say, {known} times as long as simulated; with that"
    yield (
        f"the simulated step of {_time(explained.simulated_ns)} on the device that is busy longest "
        f"({span(explained.devices)}), and what alone would make it {_time(explained.measured_ns)}:"
    )
    names = [WORDS[each.part] for each in explained.parts]
    for name, each in zip(names, explained.parts, strict=True):
        share = each.simulated_ns / explained.simulated_ns if explained.simulated_ns else None
        yield (
            f"  {name:{max(map(len, names))}} {_time(each.simulated_ns):>8} {percent(share):>7}  "
            f"{_alone(each, explained)}"
        )
    if not explained.collectives_told:
        yield "  the profile does not tell tensor-parallel communication apart: it is inside the kernels"


def _alone(each: PartAlone, explained: Explanation) -> str:
    if each.factor is not None:
        return f"{three_digits(each.factor)} times as long"
    if each.reached_ns == explained.simulated_ns:
        return "cannot explain it alone: the step does not depend on it"
    longer = explained.measured_ns > explained.simulated_ns
    how = f"{LARGEST_FACTOR} times as long" if longer else "without it"
    return f"cannot explain it alone: {how} the step takes {_time(each.reached_ns)}"


def _time(ns: int) -> str:
    return seconds(ns / NS_PER_S)
