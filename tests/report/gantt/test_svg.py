"""Timelines as SVG: well formed, everything in its place, and small however long the trace is."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from pipebench.report.gantt.gantt import MANY, MOST_ROWS, gantt, without_short_bars
from pipebench.report.gantt.svg import WIDTH, gantt_svg
from tests.report.gantt.traces import TWO, long_trace

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


def words(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def test_every_bar_has_its_place_and_tells_what_it_is() -> None:
    root = parsed(gantt_svg([gantt(TWO)], "two devices"))
    bars = {hint.text: box for box in root.iter(f"{SVG}rect") for hint in box.iter(f"{SVG}title")}
    assert len(bars) == 7
    forward = bars["F0 of stage 0 (forward), 0 ns to 10.0 ns"]
    sent = bars["f0 of stage 0 (output sent), 10.0 ns to 12.0 ns"]
    assert float(forward.get("width", 0)) == pytest.approx(10 / 74 * WIDTH, abs=0.1)
    assert float(sent.get("x", 0)) == pytest.approx(float(forward.get("x", 0)) + 10 / 74 * WIDTH, abs=0.1)
    assert {"gpu0", "gpu1-2", "0>1", "1>0"} <= set(words(root))
    assert {"gpu0, stage 0: 40 bytes", "gpu1, stage 1: 5 bytes", "gpu2, stage 1: 0 bytes"} <= set(words(root))


def test_names_with_markup_are_words() -> None:
    nasty = "<script>alert(\"1\")</script> & 'so'"
    text = gantt_svg([replace(gantt(TWO), title=nasty)], nasty)
    root = parsed(text)
    assert nasty in words(root)
    assert "<script" not in text


def test_a_hundred_thousand_tasks_are_drawn_together_and_it_is_said() -> None:
    text = gantt_svg([gantt(long_trace(100_000))], "long")
    assert len(text) < 20_000
    assert any(
        "100,000 tasks too short to be told apart are drawn together" in each for each in words(parsed(text))
    )


def test_thinning_keeps_what_can_be_seen_and_covers_what_was_busy() -> None:
    whole = gantt(long_trace(1000))
    fewer, notes = without_short_bars(whole, shortest_ns=10)
    many, last = fewer.rows[0].bars
    assert (many.kind, many.count, many.start_ns, many.end_ns) == (MANY, 1000, 0, 1000)
    assert last == whole.rows[0].bars[-1]
    assert len(notes) == 1
    assert without_short_bars(whole, shortest_ns=1) == (whole, ())


def test_more_rows_than_can_be_read_are_left_out_and_counted() -> None:
    row = gantt(TWO).rows[0]
    whole = replace(gantt(TWO), rows=(row,) * (MOST_ROWS + 6))
    fewer, notes = without_short_bars(whole, 1)
    assert len(fewer.rows) == MOST_ROWS
    assert notes == (f"6 of {MOST_ROWS + 6} rows are left out",)


def test_without_memory_or_tasks_there_is_a_picture() -> None:
    nothing = replace(gantt(TWO), rows=(), memory=(), capacity=(), until_ns=0)
    assert parsed(gantt_svg([nothing], "nothing")).tag == f"{SVG}svg"
    assert parsed(gantt_svg([], "nothing at all")).tag == f"{SVG}svg"


def test_a_shorter_timeline_is_shorter_on_the_same_scale() -> None:
    short, long = gantt(long_trace(100)), gantt(long_trace(200))
    drawn = parsed(gantt_svg([short, long], "both"))
    hints = [box for box in drawn.iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]
    widths = {box.find(f"{SVG}title").text: float(box.get("width", 0)) for box in hints}  # type: ignore[union-attr]
    last = [width for words, width in widths.items() if words and words.startswith(("F100 ", "F200 "))]
    assert last == [pytest.approx(5 / 210 * WIDTH, abs=0.1), pytest.approx(10 / 210 * WIDTH, abs=0.1)]
