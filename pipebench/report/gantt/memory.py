"""The memory of devices over time, with its axis, what the devices have, and the names of the lines."""

from collections.abc import Iterator, Sequence

from pipebench.documents.units import readable_bytes
from pipebench.domain.trace import MemoryTimeline
from pipebench.report.chart.colours import INK, PALE
from pipebench.report.chart.elements import (
    LETTER,
    Axis,
    dashed_line,
    line,
    marker,
    name,
    path,
    round_ticks,
    text,
)
from pipebench.report.gantt.gantt import Gantt
from pipebench.report.text.plans import span

PLOT_HEIGHT, LEGEND_LINE, ABOVE, BELOW = 120.0, 18.0, 30.0, 8.0
MOST_DEVICES = 8
MOST_STEPS = 900
"""Of one line; more are merged, each to the largest of its neighbours, so that no peak is lost."""
MOST_WIDER = 3
"""A line is drawn wider for each one of the same figures that lies on it, up to so many."""
MOST_EMPTY = 4
"""Capacities of so many times the highest peak are drawn to scale."""
FACTORS = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "bytes": 1.0, "byte": 1.0}


def memory_panel(gantt: Gantt, left: float, top: float, width: float, scale: float) -> tuple[list[str], float]:
    """Lines of the fullest devices with a legend above, and where the panel ends. Dashed: what devices have.

    scale: pixels of a ns.
    """
    fullest = sorted(gantt.memory, key=lambda each: (-each.peak_bytes, each.device))[:MOST_DEVICES]
    legend, ceiling = _legend(gantt, fullest, left, top, width)
    ceiling += ABOVE
    floor = ceiling + PLOT_HEIGHT
    limits = _devices_by_capacity(gantt)
    highest = max(each.peak_bytes for each in fullest) or 1
    largest = max([highest, *(limit for limit in limits if limit <= MOST_EMPTY * highest)])
    unit = readable_bytes(largest).rpartition(" ")[2]
    factor = FACTORS[unit]
    ticks = round_ticks(0.0, largest / factor, about=4)
    axis = Axis(0.0, ticks[-1] * factor, floor, ceiling, ticks)
    inside = [*legend, *_scale(axis, factor, unit, left, width)]
    inside += _capacities(limits, axis, left, width)
    lines = [_steps(each, gantt.until_ns, axis, left, scale) for each in fullest]
    for number, each in enumerate(fullest):
        over = min(MOST_WIDER, lines[number + 1 :].count(lines[number]))
        inside.append(path(lines[number], number, dashed=False, width=1.4 + 2 * over))
        peak = next((at for at, held in zip(each.time_ns, each.bytes, strict=True) if held == each.peak_bytes), 0)
        if peak <= gantt.until_ns:
            inside.append(marker(left + peak * scale, axis.at(each.peak_bytes), number, scale=0.9))
    return inside, floor + BELOW


def _legend(
    gantt: Gantt, fullest: Sequence[MemoryTimeline], left: float, top: float, width: float
) -> tuple[list[str], float]:
    """Each line by its device, the stages there and its peak, in as many columns as there is room for."""
    words = [f"{_name(gantt, each.device)}: {readable_bytes(each.peak_bytes)}" for each in fullest]
    each = 34 + LETTER * max(map(len, words))
    columns = max(1, int(width // each))
    more = len(gantt.memory) - len(fullest)
    inside = [text(left, top + 12, f"peak memory{f', and {more} devices with less' if more else ''}", bold=True)]
    for number, said in enumerate(words):
        row, column = divmod(number, columns)
        x, y = left + column * each, top + 12 + LEGEND_LINE * (row + 1)
        inside += [path([(x, y - 4), (x + 20, y - 4)], number, dashed=False), marker(x + 10, y - 4, number)]
        inside.append(text(x + 25, y, said))
    return inside, top + 12 + LEGEND_LINE * -(-len(words) // columns)


def _name(gantt: Gantt, device: int) -> str:
    stages = sorted({bar.stage for row in gantt.rows if device in row.devices for bar in row.bars})
    where = f", stage{'s' if len(stages) > 1 else ''} {span(tuple(stages))}" if stages else ""
    return f"gpu{device}{where}"


def _devices_by_capacity(gantt: Gantt) -> dict[int, tuple[int, ...]]:
    found: dict[int, tuple[int, ...]] = {}
    for each, limit in zip(gantt.memory, gantt.capacity, strict=False):
        found[limit] = (*found.get(limit, ()), each.device)
    return dict(sorted(found.items()))


def _scale(axis: Axis, factor: float, unit: str, left: float, width: float) -> Iterator[str]:
    for tick in axis.ticks:
        y = axis.at(tick * factor)
        yield line(left, y, left + width, y, PALE, 0.6)
        yield text(left - 8, y + 4, name(tick), anchor="end")
    yield line(left, axis.start, left, axis.end)
    yield text(24, (axis.start + axis.end) / 2, f"memory ({unit})", anchor="middle", turned=True)


def _capacities(limits: dict[int, tuple[int, ...]], axis: Axis, left: float, width: float) -> Iterator[str]:
    """A line at each capacity; those far above the lines share one above the axis."""
    beyond = []
    for limit, devices in limits.items():
        words = f"capacity{f' of gpu {span(devices)}' if len(limits) > 1 else ''} {readable_bytes(limit)}"
        if limit <= axis.high:
            yield dashed_line(left, axis.at(limit), left + width, INK)
            yield text(left + width - 4, axis.at(limit) - 4, words, anchor="end")
        else:
            beyond.append(words)
    if beyond:
        yield dashed_line(left, axis.end - 6, left + width, INK)
        yield text(left + width - 4, axis.end - 10, f"{', '.join(beyond)}: above this axis", anchor="end")


def _steps(of: MemoryTimeline, until_ns: int, axis: Axis, left: float, scale: float) -> list[tuple[float, float]]:
    """Corners of the line, from the start to until_ns."""
    every = max(1, len(of.bytes) // MOST_STEPS)
    places: list[tuple[float, float]] = []
    last = axis.at(0)
    for first in range(0, len(of.bytes), every):
        if of.time_ns[first] > until_ns:
            break
        x, y = left + of.time_ns[first] * scale, axis.at(max(of.bytes[first : first + every]))
        places += [(x, last), (x, y)]
        last = y
    return [*places, (left + until_ns * scale, last)]
