"""A timeline as text: one line a device or link, time from left to right, memory in tenths below."""

from collections.abc import Iterable, Iterator

from pipebench.domain.trace import MemoryTimeline
from pipebench.report.gantt.gantt import MEANING, Bar, Gantt
from pipebench.report.text.plans import peak_words

FILL = {"F": "=", "B": "-", "I": "-", "W": "~", "R": "#", "f": ">", "b": "<"}
IDLE = "."
SMALLEST_WIDTH = 20


def timeline(gantt: Gantt, columns: int = 80) -> list[str]:
    """The lines. F0 starts the forward of micro-batch 0, B0 its backward; R is the all-reduce, '.' idle.

    A task narrower than its label shows its kind only; one narrower than a column may vanish, a transfer
    takes one at least. Memory is in tenths of the device's own peak.
    """
    labels = [row.label for row in gantt.rows] + [_memory_label(each) for each in gantt.memory]
    margin = max(map(len, labels), default=0) + 1
    width = max(SMALLEST_WIDTH, columns - margin)
    scale = width / max(gantt.until_ns, 1)
    lines = [f"{row.label:<{margin}}{_cells(row.bars, width, scale)}" for row in gantt.rows]
    for each in gantt.memory:
        lines.append(f"{_memory_label(each):<{margin}}{''.join(_tenths(each, width, scale))}")
    return lines


def legend(gantt: Gantt) -> str:
    """What letters, numbers and fill mean, for what occurs."""
    told = []
    for kind in gantt.kinds:
        numbered = kind if kind == "R" or kind.islower() else f"{kind}0"
        told.append(f"{FILL[kind] if kind.islower() else numbered + FILL[kind]} {MEANING[kind]}")
    words = ", ".join([*told, f"{IDLE} idle"]) + "; the number is the micro-batch"
    if not gantt.memory:
        return words
    return f"{words}; memory in tenths of its peak, # the peak"


def peaks(gantt: Gantt) -> str:
    """The largest figure of each device."""
    return peak_words({each.device: each.peak_bytes for each in gantt.memory})


def _cells(bars: Iterable[Bar], width: int, scale: float) -> str:
    cells = [IDLE] * width
    for bar in bars:
        first, last = round(bar.start_ns * scale), min(round(bar.end_ns * scale), width)
        if bar.kind.islower():
            first = min(first, width - 1)
            last = max(last, first + 1)
        if last > first:
            cells[first:last] = _task(bar, last - first)
    return "".join(cells)


def _task(bar: Bar, width: int) -> str:
    if bar.kind.islower():
        return FILL[bar.kind] * width
    label = bar.label if len(bar.label) <= width else bar.kind
    return label.ljust(width, FILL[bar.kind])


def _memory_label(of: MemoryTimeline) -> str:
    return f"mem{of.device}"


def _tenths(of: MemoryTimeline, width: int, scale: float) -> Iterator[str]:
    """For each column the most that is in use during it."""
    held, at = 0, 0
    for column in range(width):
        most = held
        while at < len(of.bytes) and of.time_ns[at] * scale < column + 1:
            held = of.bytes[at]
            most = max(most, held)
            at += 1
        yield "#" if most >= of.peak_bytes > 0 else str(10 * most // max(of.peak_bytes, 1))
