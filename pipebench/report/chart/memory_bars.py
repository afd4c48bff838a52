"""The peak memory of each device against what devices have, a strip of bars for each plan."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipebench.documents.units import readable_bytes, three_digits
from pipebench.report.chart.colours import INK, PALE
from pipebench.report.chart.elements import (
    LETTER,
    SIZE,
    SMALL_WIDTH,
    Axis,
    colour_of,
    dashed_line,
    document,
    hint,
    line,
    name,
    round_ticks,
    shortened,
    text,
)

LEFT, RIGHT, HEAD, NAME, STRIP, GAP, BELOW = 34.0, 14.0, 48.0, 18.0, 46.0, 12.0, 40.0
"""Pixels: beside and above the strips, of a plan's name, of its strip, between plans, and below."""
SAMPLE = 22.0
"""Pixels of the line that the legend shows."""
GB = 1e9
MOST_BARS = 128
"""Of more devices each bar is the fullest of several in a row."""
LEAST_ROOM = 1.05
"""The axis goes on above the limit, so that its line is seen."""


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """A plan. number: of who made it, which gives its colour. peak_bytes: by device, without those that idle."""

    name: str
    number: int
    peak_bytes: Mapping[int, int]


def memory_svg(plans: Sequence[DeviceMemory], devices: int, limit_bytes: int | None, title: str) -> str:
    """The strips as an SVG file, all on one scale of GB. limit_bytes: what a device has, the smallest one.

    devices: their number, at least 1.
    """
    highest = max((held for plan in plans for held in plan.peak_bytes.values()), default=0)
    top = LEAST_ROOM * max(highest, limit_bytes or 0) / GB or 1.0
    inside = [text(LETTER, SIZE + 4, title, bold=True), text(LETTER, HEAD - 12, "GB")]
    if limit_bytes is not None:
        which = "the smallest device has" if highest > limit_bytes else "a device has"
        inside.append(dashed_line(LEFT, HEAD - 16, LEFT + SAMPLE, INK))
        inside.append(text(LEFT + SAMPLE + 6, HEAD - 12, f"{which} {readable_bytes(limit_bytes)}"))
    y = HEAD
    for plan in plans:
        floor = y + NAME + STRIP
        inside += _strip(plan, devices, limit_bytes, Axis(0.0, top, floor, floor - STRIP, round_ticks(0, top, 2)))
        y = floor + GAP
    inside += _devices(devices, y - GAP)
    described = "; ".join(
        f"{plan.name}: {_fullest(plan)} on the fullest of {len(plan.peak_bytes)} devices" for plan in plans
    )
    return document(SMALL_WIDTH, y - GAP + BELOW, title, inside, described)


def _fullest(plan: DeviceMemory) -> str:
    return readable_bytes(max(plan.peak_bytes.values(), default=0))


def _strip(plan: DeviceMemory, devices: int, limit_bytes: int | None, up: Axis) -> Iterator[str]:
    said = f"at most {three_digits(max(plan.peak_bytes.values(), default=0) / GB)}"
    end = SMALL_WIDTH - RIGHT
    yield text(LEFT, up.end - 5, shortened(plan.name, end - LEFT - LETTER * (len(said) + 1)))
    yield text(end, up.end - 5, said, anchor="end")
    for tick in up.ticks:
        if tick <= up.high:
            yield line(LEFT, up.at(tick), end, up.at(tick), PALE)
            yield text(LEFT - 6, up.at(tick) + 4, name(tick), anchor="end")
    together = -(-devices // MOST_BARS)
    width = (end - LEFT) * together / devices
    for place, (device, held) in _bars(plan, devices, together).items():
        height = up.start - up.at(held / GB)
        box = f'x="{LEFT + (place + 0.1) * width:.1f}" y="{up.start - height:.2f}"'
        size = f'width="{0.8 * width:.1f}" height="{height:.2f}" fill="{colour_of(plan.number)}"'
        yield f"<rect {box} {size}>{hint(f'{plan.name}, gpu{device}: {readable_bytes(held)}')}</rect>"
    yield line(LEFT, up.start, end, up.start)
    if limit_bytes is not None:
        yield dashed_line(LEFT, up.at(limit_bytes / GB), end, INK)


def _bars(plan: DeviceMemory, devices: int, together: int) -> dict[int, tuple[int, int]]:
    """By place the device that counts there, and its bytes: of as many in a row as share a bar the fullest."""
    found: dict[int, tuple[int, int]] = {}
    for device, held in sorted(plan.peak_bytes.items()):
        place = device // together
        if 0 <= device < devices and held > found.get(place, (0, 0))[1]:
            found[place] = (device, held)
    return found


def _devices(devices: int, floor: float) -> Iterator[str]:
    """The numbers of devices below the lowest strip, as many as there is room for."""
    width = (SMALL_WIDTH - RIGHT - LEFT) / devices
    every = next(step for step in (1, 2, 4, 8, 16, 32, 64, 128, 256, devices) if step * width >= LETTER * 3)
    for device in range(0, devices, every):
        yield text(LEFT + (device + 0.5) * width, floor + 16, str(device), anchor="middle")
    yield text((LEFT + SMALL_WIDTH - RIGHT) / 2, floor + 33, "device", anchor="middle")
