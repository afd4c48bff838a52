"""Memory over time under a timeline: a step line for each of the fullest devices, and what they have."""

from collections.abc import Iterator

from pipebench.domain.trace import MemoryTimeline
from pipebench.domain.units import readable_bytes
from pipebench.report.chart.elements import INK, PALE, colour_of, line, text
from pipebench.report.gantt.gantt import Gantt

HEIGHT, HEAD = 96.0, 18.0
MOST_DEVICES = 8
MOST_STEPS = 900
"""Of one line; more are merged, each to the largest of its neighbours, so that no peak is lost."""


def memory_panel(gantt: Gantt, left: float, top: float, width: float, scale: float) -> Iterator[str]:
    """Lines of the fullest devices, their peaks in words; dashed: what a device has, where it is near."""
    fullest = sorted(gantt.memory, key=lambda each: (-each.peak_bytes, each.device))[:MOST_DEVICES]
    highest = max(each.peak_bytes for each in fullest) or 1
    limit = min(gantt.capacity, default=0)
    ceiling = max(highest, limit if limit <= 2 * highest else 0)
    low, high = top + HEIGHT, top + HEAD
    words = ", ".join(f"gpu{each.device} {readable_bytes(each.peak_bytes)}" for each in fullest)
    more = len(gantt.memory) - len(fullest)
    yield text(left, top + 11, f"peak memory: {words}{f', and {more} devices with less' if more else ''}")
    yield text(left - 8, low, "memory", anchor="end")
    yield line(left, low, left + width, low, PALE)
    if limit and limit <= ceiling:
        y = low - (low - high) * limit / ceiling
        yield line(left, y, left + width, y, INK, 0.5)
        yield text(left - 8, y + 4, readable_bytes(limit), anchor="end")
    for number, each in enumerate(fullest):
        points = _steps(each, gantt.until_ns, left, low, scale, (low - high) / ceiling)
        yield f'<polyline points="{points}" fill="none" stroke="{colour_of(number)}" stroke-width="1.3"/>'


def _steps(of: MemoryTimeline, until_ns: int, left: float, low: float, scale: float, pixel: float) -> str:
    """Corners of the line, from the start to until_ns."""
    every = max(1, len(of.bytes) // MOST_STEPS)
    points: list[str] = []
    last = low
    for first in range(0, len(of.bytes), every):
        if of.time_ns[first] > until_ns:
            break
        x = left + of.time_ns[first] * scale
        height = low - max(of.bytes[first : first + every]) * pixel
        points += [f"{x:.1f},{last:.1f}", f"{x:.1f},{height:.1f}"]
        last = height
    return " ".join([*points, f"{left + until_ns * scale:.1f},{last:.1f}"])
