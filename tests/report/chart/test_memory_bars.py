"""Memory by device: heights are bytes on one scale, and the limit lies where its bytes are."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.report.chart.memory_bars import MOST_BARS, STRIP, DeviceMemory, memory_svg
from tests.report.chart.drawn import SVG, all_of, words_of

GB = 10**9


def heights(root: ET.Element) -> dict[str, float]:
    """By what a bar tells."""
    bars = [(box, title) for box in all_of(root, "rect") for title in box.findall(f"{SVG}title")]
    return {title.text or "": float(box.attrib["height"]) for box, title in bars}


def limits(root: ET.Element) -> list[float]:
    """Heights of the dashed lines, without that of the legend."""
    return [float(each.attrib["y1"]) for each in all_of(root, "line") if "stroke-dasharray" in each.attrib][1:]


@given(
    st.lists(st.dictionaries(st.integers(0, 7), st.integers(1, 99 * GB), min_size=1), min_size=1, max_size=4),
    st.integers(1, 99 * GB),
)
def test_all_bars_and_the_limit_have_one_scale(peaks: list[dict[int, int]], limit: int) -> None:
    plans = [DeviceMemory(f"plan{number}", number, each) for number, each in enumerate(peaks)]
    root = ET.fromstring(memory_svg(plans, 8, limit, "memory"))
    boxes = [each for each in all_of(root, "rect") if each.find(f"{SVG}title") is not None]
    held = [amount for each in peaks for _, amount in sorted(each.items())]
    top = 1.05 * max(*held, limit)
    assert [float(box.attrib["height"]) for box in boxes] == pytest.approx(
        [STRIP * amount / top for amount in held], abs=0.01
    )
    floors = sorted({round(float(box.attrib["y"]) + float(box.attrib["height"]), 1) for box in boxes})
    assert limits(root) == pytest.approx([floor - STRIP * limit / top for floor in floors], abs=0.15)


def test_bars_stand_at_their_devices_and_tell_their_bytes() -> None:
    root = ET.fromstring(memory_svg([DeviceMemory("a", 0, {0: 4 * GB, 3: 8 * GB})], 4, 10 * GB, "memory"))
    told = heights(root)
    assert list(told) == ["a, gpu0: 4.00 GB", "a, gpu3: 8.00 GB"]
    assert told["a, gpu3: 8.00 GB"] == pytest.approx(2 * told["a, gpu0: 4.00 GB"], abs=0.02)
    lefts = [float(box.attrib["x"]) for box in all_of(root, "rect")]
    numbers = {each.text: float(each.attrib["x"]) for each in all_of(root, "text")}
    assert lefts[1] - lefts[0] == pytest.approx(numbers["3"] - numbers["0"], abs=0.2)
    assert {"a device has 10.0 GB", "at most 8.00"} <= set(words_of(root))


def test_a_limit_below_a_bar_is_that_of_the_smallest_device() -> None:
    root = ET.fromstring(memory_svg([DeviceMemory("a", 0, {0: 4 * GB, 1: 30 * GB})], 2, 16 * GB, "memory"))
    assert "the smallest device has 16.0 GB" in words_of(root)
    assert limits(root)
    unlimited = ET.fromstring(memory_svg([DeviceMemory("a", 0, {0: 4 * GB})], 2, None, "memory"))
    assert not limits(unlimited)


def test_of_many_devices_the_fullest_of_each_few_counts() -> None:
    peaks = dict.fromkeys(range(4 * MOST_BARS), GB) | {5: 7 * GB}
    told = heights(ET.fromstring(memory_svg([DeviceMemory("a", 0, peaks)], 4 * MOST_BARS, 8 * GB, "memory")))
    assert len(told) == MOST_BARS
    assert list(told)[1] == "a, gpu5: 7.00 GB"


def test_devices_that_no_cluster_has_cost_nothing() -> None:
    text = memory_svg([DeviceMemory("a", 0, {0: GB, -3: GB, 10**15: GB})], 10**12, 8 * GB, "memory")
    assert list(heights(ET.fromstring(text))) == ["a, gpu0: 1.00 GB"]
