"""A periodic schedule as blocks on lanes: one period of it, each block with its index shift."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule


@dataclass(frozen=True, slots=True)
class Block:
    """An operation or a transfer, in ns from the start of a period; it may reach into the next one.

    In period k it works on micro-batch k - shift (MadPipe, section 4). stage: a transfer's producer side.
    """

    kind: str
    stage: int
    start_ns: int
    duration_ns: int
    shift: int

    @property
    def label(self) -> str:
        """As in the paper's figure 2: the index shift in brackets."""
        return f"{self.kind}{self.stage}[{self.shift}]"

    def parts(self, period_ns: int) -> Iterator[tuple[int, int]]:
        """(start, end) of what lies in this period; two parts where it goes on at the period's beginning."""
        end = self.start_ns + min(self.duration_ns, period_ns)
        yield self.start_ns, min(end, period_ns)
        if end > period_ns:
            yield 0, end - period_ns


@dataclass(frozen=True, slots=True)
class Row:
    """A device, a group of them that works together, or a link; its blocks by start."""

    label: str
    blocks: tuple[Block, ...]
    link: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """One period. busy: share of the period that each row is busy, in the order of the rows."""

    period_ns: int
    rows: tuple[Row, ...]

    @property
    def busy(self) -> tuple[float, ...]:
        """Of a row on which nothing overlaps."""
        return tuple(sum(block.duration_ns for block in row.blocks) / self.period_ns for row in self.rows)


def pattern_of(problem: Problem, plan: Plan, schedule: PeriodicSchedule) -> Pattern:
    """The pattern with the durations of the cost model: devices, then links that carry anything.

    Devices of one stage make one row, stages on the same devices share it. A link that carries one transfer at a
    time, either way (link mode `half`), is one row; on others each direction has its own.
    """
    model = CostModel(problem)
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    devices: dict[tuple[int, ...], list[Block]] = {tuple(sorted(stage.devices)): [] for stage in plan.stages}
    for kind, stage, start, shift in zip(
        schedule.kinds, schedule.stage, schedule.start_ns, schedule.shift, strict=True
    ):
        duration = times[stage].forward if kind == FORWARD else times[stage].backward
        lane = tuple(sorted(plan.stages[stage].devices))
        devices[lane].append(Block(kind, stage, start, duration, shift))
    rows = [Row(named(lane), _by_start(blocks)) for lane, blocks in sorted(devices.items())]
    links = sorted(_links(model, plan, schedule).items())
    rows += [Row(label, _by_start(blocks), link=True) for (_, label), blocks in links]
    return Pattern(schedule.period_ns, tuple(rows))


def named(devices: tuple[int, ...]) -> str:
    """gpu3, or gpu0-3 where there are several."""
    return f"gpu{devices[0]}" if len(devices) == 1 else f"gpu{devices[0]}-{devices[-1]}"


def _links(
    model: CostModel, plan: Plan, schedule: PeriodicSchedule
) -> dict[tuple[tuple[int, ...], str], list[Block]]:
    """By where a link lies and what it is called."""
    taken: dict[tuple[str, int, int], int] = {}
    for message in model.messages(plan):
        for kind, source, target in (
            (FORWARD, message.source, message.target),
            (BACKWARD, message.target, message.source),
        ):
            duration = model.message_ns(plan, message, backward=kind == BACKWARD)
            taken[kind, source, target] = taken.get((kind, source, target), 0) + duration
    shared = model.problem.cluster.link_mode == "half"
    links: dict[tuple[tuple[int, ...], str], list[Block]] = {}
    for kind, source, target, start, shift in zip(
        schedule.transfer_kinds,
        schedule.source,
        schedule.target,
        schedule.transfer_start_ns,
        schedule.transfer_shift,
        strict=True,
    ):
        duration = taken.get((kind, source, target), 0)
        if duration == 0:  # as between stages on the same devices
            continue
        ends = [tuple(sorted(plan.stages[stage].devices)) for stage in (source, target)]
        if shared:
            ends.sort()
        label = f"{named(ends[0])}{'-' if shared else '>'}{named(ends[1])}"
        producer = source if kind == FORWARD else target
        key = ((*ends[0], *ends[1]), label)
        links.setdefault(key, []).append(Block(kind.lower(), producer, start, duration, shift))
    return links


def _by_start(blocks: list[Block]) -> tuple[Block, ...]:
    return tuple(sorted(blocks, key=lambda block: (block.start_ns, block.kind, block.stage)))
