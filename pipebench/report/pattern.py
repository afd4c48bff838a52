"""A periodic schedule as blocks on lanes: one period of it, as text and as SVG."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.costs.model import CostModel
from pipebench.documents.units import readable_seconds
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, PeriodicSchedule
from pipebench.report.chart.elements import INK, LETTER, PALE, SIZE, document, line, name, round_ticks, text


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
class PatternRow:
    """A device, a group of them that works together, or a link; its blocks by start."""

    label: str
    blocks: tuple[Block, ...]
    link: bool = False


@dataclass(frozen=True, slots=True)
class PeriodPicture:
    """One period. busy: share of the period that each row is busy, in the order of the rows."""

    period_ns: int
    rows: tuple[PatternRow, ...]

    @property
    def busy(self) -> tuple[float, ...]:
        """Of a row on which nothing overlaps."""
        return tuple(sum(block.duration_ns for block in row.blocks) / self.period_ns for row in self.rows)


def pattern_of(problem: Problem, plan: Plan, schedule: PeriodicSchedule) -> PeriodPicture:
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
    rows = [PatternRow(device_names(lane), _by_start(blocks)) for lane, blocks in sorted(devices.items())]
    links = sorted(_link_rows(model, plan, schedule).items())
    rows += [PatternRow(label, _by_start(blocks), link=True) for (_, label), blocks in links]
    return PeriodPicture(schedule.period_ns, tuple(rows))


def device_names(devices: tuple[int, ...]) -> str:
    """gpu3, or gpu0-3 where there are several."""
    return f"gpu{devices[0]}" if len(devices) == 1 else f"gpu{devices[0]}-{devices[-1]}"


def _link_rows(
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
        label = f"{device_names(ends[0])}{'-' if shared else '>'}{device_names(ends[1])}"
        producer = source if kind == FORWARD else target
        key = ((*ends[0], *ends[1]), label)
        links.setdefault(key, []).append(Block(kind.lower(), producer, start, duration, shift))
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
    lines = [f"period {readable_seconds(pattern.period_ns / 1e9)}"]
    for row, busy in zip(pattern.rows, pattern.busy, strict=True):
        cells = [IDLE] * width
        for block in row.blocks:
            _put(cells, block, pattern.period_ns)
        lines.append(f"{row.label:<{margin}}{''.join(cells)} {100 * busy:>3.0f} %")
    return lines


def _put(cells: list[str], block: Block, period_ns: int) -> None:
    scale = len(cells) / period_ns
    for position, (start, end) in enumerate(block.parts(period_ns)):
        first, last = round(start * scale), round(end * scale)
        if last > first:
            label = _fitting(block, last - first) if position == 0 else ""
            cells[first:last] = label.ljust(last - first, FILL[block.kind])


def _fitting(block: Block, width: int) -> str:
    return next(
        (text for text in (block.label, f"{block.kind}{block.stage}", block.kind) if len(text) <= width), ""
    )


WIDTH, ROW, GAP, HEAD, MARGIN = 840.0, 24.0, 8.0, 66.0, 16.0
COLOURS = {"F": "#9ecae1", "B": "#fdbe85", "f": "#deebf7", "b": "#feedde"}
MEANING = (("F", "forward"), ("B", "backward"), ("f", "output sent"), ("b", "gradient sent back"))


def pattern_svg(pattern: PeriodPicture, title: str) -> str:
    """The pattern as an SVG file; index shifts in brackets, as in MadPipe's figure 2."""
    left = MARGIN + LETTER * max((len(row.label) for row in pattern.rows), default=0) + 8
    bottom = HEAD + (ROW + GAP) * len(pattern.rows)
    scale = WIDTH / pattern.period_ns
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True), *_legend(left)]
    inside += _time(pattern.period_ns, left, bottom)
    for position, row in enumerate(pattern.rows):
        top = HEAD + (ROW + GAP) * position
        inside.append(text(left - 8, top + ROW / 2 + 4, row.label, anchor="end"))
        for block in row.blocks:
            parts = [(left + a * scale, (b - a) * scale) for a, b in block.parts(pattern.period_ns)]
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


def _time(period_ns: int, left: float, bottom: float) -> Iterator[str]:
    """An axis in the unit of the period, which is marked at both ends."""
    words = readable_seconds(period_ns / 1e9)
    unit = words.rpartition(" ")[2]
    factor = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}[unit]
    for tick in round_ticks(0.0, period_ns / factor, about=8):
        if tick * factor <= period_ns:
            x = left + WIDTH * tick * factor / period_ns
            yield line(x, HEAD - 4, x, bottom, PALE)
            yield text(x, bottom + 14, name(tick), anchor="middle")
    for x in (left, left + WIDTH):
        yield line(x, HEAD - 4, x, bottom)
    yield text(left + WIDTH / 2, bottom + 32, f"time ({unit}), period {words}", anchor="middle")


def _label(block: Block, x: float, width: float, top: float) -> Iterator[str]:
    """In the wider part of a block that goes on at the beginning, and only where there is room."""
    words = next((w for w in (block.label, f"{block.kind}{block.stage}") if LETTER * len(w) <= width - 2), "")
    if words:
        yield text(x + width / 2, top + ROW / 2 + 4, words, anchor="middle")


def _box(x: float, y: float, width: float, height: float, kind: str, corner: int) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{corner}"'
    return f'<rect {place} fill="{COLOURS[kind]}" stroke="{INK}" stroke-width="0.8" class="{kind}"/>'
