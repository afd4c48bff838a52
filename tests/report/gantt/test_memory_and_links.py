"""Below the bars: memory with axis, capacity and names; many links in one lane; times without a real unit."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from pipebench.api import draw
from pipebench.domain.trace import MemoryTimeline, Trace
from pipebench.report.gantt.gantt import Gantt, gantt
from pipebench.report.gantt.links import COLUMN, LANE, MOST_LINKS
from pipebench.report.gantt.svg import LEAST_TRANSFER, gantt_svg
from tests.report.gantt.traces import TWO

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*gantts: Gantt) -> ET.Element:
    return ET.fromstring(gantt_svg(gantts, "title"))


def places(root: ET.Element) -> dict[str, tuple[float, float]]:
    return {
        each.text or "": (float(each.attrib["x"]), float(each.attrib["y"])) for each in root.iter(f"{SVG}text")
    }


def dashed(root: ET.Element) -> list[ET.Element]:
    return [each for each in root.iter(f"{SVG}line") if "stroke-dasharray" in each.attrib]


def with_memory(*peaks: int, capacity: tuple[int, ...]) -> Gantt:
    memory = tuple(MemoryTimeline(device=n, time_ns=(0, 10), bytes=(0, peak)) for n, peak in enumerate(peaks))
    return replace(gantt(TWO), memory=memory, capacity=capacity)


def test_memory_has_an_axis_with_a_unit_and_lines_that_are_named() -> None:
    root = drawn(with_memory(6_000_000_000, 8_000_000_000, 2_000_000_000, capacity=(16_000_000_000,) * 3))
    found = places(root)
    assert "memory (GB)" in found
    zero, five, fifteen = (found[tick][1] for tick in ("0", "5", "15"))
    assert zero - five == pytest.approx((five - fifteen) / 2, abs=0.2)
    (capacity,) = dashed(root)
    assert float(capacity.attrib["y1"]) + 4 == pytest.approx(zero - (zero - five) * 16 / 5, abs=0.2)
    assert found["capacity 16.0 GB"][1] == pytest.approx(float(capacity.attrib["y1"]) - 4)
    colours = [each.attrib["stroke"] for each in root.iter(f"{SVG}polyline")]
    assert colours[:3] == colours[3:]  # the legend's samples, then the lines
    assert len(set(colours)) == 3
    peaks = ["gpu1, stage 1: 8.00 GB", "gpu0, stage 0: 6.00 GB", "gpu2, stage 1: 2.00 GB"]
    assert [words for words in found if words.startswith("gpu") and ":" in words] == peaks


def test_of_equal_lines_each_is_seen() -> None:
    root = drawn(with_memory(6_000, 6_000, 8_000, 6_000, capacity=(9_000,) * 4))
    widths = [float(each.attrib["stroke-width"]) for each in root.iter(f"{SVG}polyline")][4:]
    alone, *equal = widths
    assert alone == equal[-1]
    assert equal == sorted(set(equal), reverse=True)


def test_devices_of_several_sizes_and_one_much_larger() -> None:
    root = drawn(with_memory(6_000, 8_000, 2_000, capacity=(10_000, 10_000, 900_000)))
    near, far = dashed(root)
    found = places(root)
    assert found["capacity of gpu 0-1 10.0 kB"][1] < found["0"][1]
    assert found["capacity of gpu 2 0.900 MB: above this axis"][1] < found["10"][1]
    assert float(far.attrib["y1"]) < float(near.attrib["y1"])


def star(links: int) -> Trace:
    """Stage 0 sends to so many others, one after the other, 2 ns each."""
    numbers = tuple(range(links))
    return replace_transfers(
        source=(0,) * links,
        target=tuple(number + 1 for number in numbers),
        start=tuple(2 * number for number in numbers),
    )


def replace_transfers(source: tuple[int, ...], target: tuple[int, ...], start: tuple[int, ...]) -> Trace:
    return Trace(
        origin="simulated",
        lanes=((0,),),
        lane=(0,),
        stage=(0,),
        micro_batch=(0,),
        kinds="F",
        start_ns=(0,),
        end_ns=(1000,),
        source=source,
        target=target,
        tensor=(0,) * len(source),
        message=(0,) * len(source),
        transfer_kinds="F" * len(source),
        transfer_start_ns=start,
        transfer_end_ns=tuple(each + 2 for each in start),
        total_ns=1000,
    )


def test_few_links_have_a_lane_each_and_short_transfers_are_seen() -> None:
    root = drawn(gantt(star(MOST_LINKS)))
    assert {f"0>{number + 1}" for number in range(MOST_LINKS)} <= set(places(root))
    bars = [box for box in root.iter(f"{SVG}rect") if "output sent" in "".join(box.itertext())]
    assert {float(bar.attrib["width"]) for bar in bars} == {LEAST_TRANSFER}


def test_many_links_share_a_lane_whose_area_is_the_time_of_their_transfers() -> None:
    root = drawn(gantt(star(MOST_LINKS + 1)))
    assert not any(words.startswith("0>") for words in places(root))
    (told,) = [words for words in places(root) if "links:" in words]
    assert told == "7 links: transfers under way, at most 1 at once (mean of 5.56 ns)"
    bars = [box for box in root.iter(f"{SVG}rect") if box.attrib["fill"] == "#4292c6"]
    heights = [float(bar.attrib["height"]) for bar in bars if float(bar.attrib["width"]) == pytest.approx(COLUMN)]
    assert sum(heights) / LANE * (1000 / 180) == pytest.approx(14, rel=0.01)


def test_abstract_times_say_units_everywhere() -> None:
    (drawing,) = draw("gpipe", stages=2, micro_batches=2, transfer=0.5)
    text = gantt_svg([drawing.gantt], "title")
    found = places(ET.fromstring(text))
    assert "time (units)" in found
    assert any("time 10 units, bubble" in words for words in found)
    assert "F0 of stage 0 (forward), 0 units to 1 units" in text
    assert " ms" not in text
    assert "time (ns)" in places(drawn(gantt(TWO)))
