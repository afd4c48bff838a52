"""A periodic schedule as blocks on lanes: what repeats of it, as text and as SVG."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

from pipebench.costs.messages import Message
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.documents.units import readable_seconds
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule
from pipebench.report.chart.colours import INK, PALE, TASKS, WIDE_TRANSFERS
from pipebench.report.chart.elements import LETTER, SIZE, document, line, name, round_ticks, text

MOST_PERIODS = 24
"""What a picture shows at most."""


@dataclass(frozen=True, slots=True)
class Block:
    """An operation or a transfer, in ns from the start of the picture; it may reach beyond its end.

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

    def parts(self, span_ns: int) -> Iterator[tuple[int, int]]:
        """(start, end) of what lies in the picture; two parts where it goes on at the picture's beginning."""
        end = self.start_ns + min(self.duration_ns, span_ns)
        yield self.start_ns, min(end, span_ns)
        if end > span_ns:
            yield 0, end - span_ns


@dataclass(frozen=True, slots=True)
class PatternRow:
    """A device, a group of them that works together, or a link; its blocks by start."""

    label: str
    blocks: tuple[Block, ...]
    link: bool = False


@dataclass(frozen=True, slots=True)
class PeriodPicture:
    """One period; where replicas take micro-batches in turn, as many as it takes until all begin anew.

    busy: share of the time that each row is busy, in the order of the rows.
    """

    period_ns: int
    rows: tuple[PatternRow, ...]
    periods: int = 1

    @property
    def span_ns(self) -> int:
        """The length of the picture."""
        return self.period_ns * self.periods

    @property
    def words(self) -> str:
        """The period, and how many of them are shown."""
        period = f"period {readable_seconds(self.period_ns / NS_PER_S)}"
        return period if self.periods == 1 else f"{period}, {self.periods} of them"

    @property
    def busy(self) -> tuple[float, ...]:
        """Of a row on which nothing overlaps."""
        return tuple(sum(block.duration_ns for block in row.blocks) / self.span_ns for row in self.rows)


def pattern_of(problem: Problem, plan: Plan, schedule: PeriodicSchedule) -> PeriodPicture:
    """The pattern with the durations of the cost model: devices, then links that carry anything.

    Devices that work together make one row, stages on the same devices share it. A link that carries one transfer
    at a time, either way (link mode `half`), is one row; on others each direction has its own.
    Of replicas that begin anew after more than MOST_PERIODS periods, so many are shown.
    """
    model = CostModel(problem)
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    periods = min(MOST_PERIODS, lcm(*(stage.turns for stage in plan.stages)))
    devices: dict[tuple[int, ...], list[Block]] = {
        tuple(sorted(each)): [] for stage in plan.stages for each in stage.device_sets
    }
    for kind, stage, start, shift in zip(
        schedule.kinds, schedule.stage, schedule.start_ns, schedule.shift, strict=True
    ):
        duration = times[stage].forward if kind == FORWARD else times[stage].backward
        for period in range(periods):
            lane = _devices(plan, stage, period - shift)
            devices[lane].append(Block(kind, stage, start + period * schedule.period_ns, duration, shift))
    rows = [PatternRow(device_names(lane), _by_start(blocks)) for lane, blocks in sorted(devices.items())]
    links = sorted(_link_rows(model, plan, schedule, periods).items())
    rows += [PatternRow(label, _by_start(blocks), link=True) for (_, label), blocks in links]
    return PeriodPicture(schedule.period_ns, tuple(rows), periods)


def _devices(plan: Plan, stage: int, micro_batch: int) -> tuple[int, ...]:
    return tuple(sorted(plan.stages[stage].devices_of(micro_batch)))


def device_names(devices: tuple[int, ...]) -> str:
    """gpu3, or gpu0-3 where there are several."""
    return f"gpu{devices[0]}" if len(devices) == 1 else f"gpu{devices[0]}-{devices[-1]}"


def _link_rows(
    model: CostModel, plan: Plan, schedule: PeriodicSchedule, periods: int
) -> dict[tuple[tuple[int, ...], str], list[Block]]:
    """By where a link lies and what it is called."""
    sent: dict[tuple[str, int, int], list[Message]] = {}
    for message in model.messages(plan):
        sent.setdefault((FORWARD, message.source, message.target), []).append(message)
        sent.setdefault((BACKWARD, message.target, message.source), []).append(message)
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
        producer = source if kind == FORWARD else target
        for period in range(periods):
            number = period - shift
            crossing = sent.get((kind, source, target), ())
            duration = sum(model.message_ns(plan, each, kind == BACKWARD, number) for each in crossing)
            if duration == 0:  # as between stages on the same devices
                continue
            ends = [_devices(plan, stage, number) for stage in (source, target)]
            if shared:
                ends.sort()
            label = f"{device_names(ends[0])}{'-' if shared else '>'}{device_names(ends[1])}"
            begin = start + period * schedule.period_ns
            links.setdefault(((*ends[0], *ends[1]), label), []).append(
                Block(kind.lower(), producer, begin, duration, shift)
            )
    return links


def _by_start(blocks: list[Block]) -> tuple[Block, ...]:
    return tuple(sorted(blocks, key=lambda block: (block.start_ns, block.kind, block.stage)))


FILL = {"F": "=", "B": "-", "f": ">", "b": "<"}
IDLE = "."
SMALLEST_WIDTH = 20
LEGEND = (
    "F0[1]= forward of stage 0, B0[1]- backward, f0> its output sent, b0< the gradient of its output sent back; "
    "[h]: in period k the micro-batch k - h; . idle"
)


def pattern_lines(pattern: PeriodPicture, columns: int = 80) -> list[str]:
    """The lines, the share of the period that each device or link is busy at their end.

    A block that reaches into the next period goes on at the left, without its label. One narrower than its label
    shows as much of it as is unmistakable (F0, F); one narrower than a column may vanish.
    """
    labels = [row.label for row in pattern.rows]
    margin = max(map(len, labels), default=0) + 1
    width = max(SMALLEST_WIDTH, columns - margin - len(" 100 %"))
    lines = [pattern.words]
    for row, busy in zip(pattern.rows, pattern.busy, strict=True):
        cells = [IDLE] * width
        for block in row.blocks:
            _put(cells, block, pattern.span_ns)
        lines.append(f"{row.label:<{margin}}{''.join(cells)} {100 * busy:>3.0f} %")
    return lines


def _put(cells: list[str], block: Block, span_ns: int) -> None:
    scale = len(cells) / span_ns
    for position, (start, end) in enumerate(block.parts(span_ns)):
        first, last = round(start * scale), round(end * scale)
        if last > first:
            label = _fitting(block, last - first) if position == 0 else ""
            cells[first:last] = label.ljust(last - first, FILL[block.kind])


def _fitting(block: Block, width: int) -> str:
    return next(
        (text for text in (block.label, f"{block.kind}{block.stage}", block.kind) if len(text) <= width), ""
    )


WIDTH, ROW, GAP, HEAD, MARGIN = 840.0, 24.0, 8.0, 66.0, 16.0
COLOURS = TASKS | WIDE_TRANSFERS
MEANING = (("F", "forward"), ("B", "backward"), ("f", "output sent"), ("b", "gradient sent back"))


def pattern_svg(pattern: PeriodPicture, title: str) -> str:
    """The pattern as an SVG file; index shifts in brackets, as in MadPipe's figure 2."""
    left = MARGIN + LETTER * max((len(row.label) for row in pattern.rows), default=0) + 8
    bottom = HEAD + (ROW + GAP) * len(pattern.rows)
    scale = WIDTH / pattern.span_ns
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *_legend(left)]
    inside += _time(pattern, left, bottom)
    for position, row in enumerate(pattern.rows):
        top = HEAD + (ROW + GAP) * position
        inside.append(text(left - 8, top + ROW / 2 + 4, row.label, anchor="end"))
        for block in row.blocks:
            parts = [(left + a * scale, (b - a) * scale) for a, b in block.parts(pattern.span_ns)]
            for x, width in parts:
                inside.append(_box(x, top, width, ROW, block.kind, 7 if row.link else 0))
            inside += _label(block, *max(parts, key=lambda part: part[1]), top)
    width = max(left + WIDTH + MARGIN + 10, MARGIN + LETTER * 1.15 * len(title))
    return document(width, bottom + 44, title, inside)


def _legend(left: float) -> Iterator[str]:
    x = left
    for kind, meaning in MEANING:
        yield _box(x, HEAD - 22, 14, 12, kind, 3 if kind.islower() else 0)
        yield text(x + 20, HEAD - 12, meaning)
        x += 20 + LETTER * len(meaning) + 24


def _time(pattern: PeriodPicture, left: float, bottom: float) -> Iterator[str]:
    """An axis in the unit of the period; each period is marked at both ends."""
    unit = readable_seconds(pattern.period_ns / NS_PER_S).rpartition(" ")[2]
    factor = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}[unit]
    for tick in round_ticks(0.0, pattern.span_ns / factor, about=8):
        if tick * factor <= pattern.span_ns:
            x = left + WIDTH * tick * factor / pattern.span_ns
            yield line(x, HEAD - 4, x, bottom, PALE)
            yield text(x, bottom + 14, name(tick), anchor="middle")
    for mark in range(pattern.periods + 1):
        x = left + WIDTH * mark / pattern.periods
        yield line(x, HEAD - 4, x, bottom)
    yield text(left + WIDTH / 2, bottom + 32, f"time ({unit}), {pattern.words}", anchor="middle")


def _label(block: Block, x: float, width: float, top: float) -> Iterator[str]:
    """In the wider part of a block that goes on at the beginning, and only where there is room."""
    words = next((w for w in (block.label, f"{block.kind}{block.stage}") if LETTER * len(w) <= width - 2), "")
    if words:
        yield text(x + width / 2, top + ROW / 2 + 4, words, anchor="middle")


def _box(x: float, y: float, width: float, height: float, kind: str, corner: int) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{corner}"'
    return f'<rect {place} fill="{COLOURS[kind]}" stroke="{INK}" stroke-width="0.8" class="{kind}"/>'
