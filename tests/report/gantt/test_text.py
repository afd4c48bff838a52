"""The terminal timeline: what is drawn, at any width."""

import pytest

from pipebench.api import draw
from pipebench.domain.trace import Trace
from pipebench.report.gantt.gantt import gantt
from pipebench.report.gantt.text import legend, timeline
from tests.report.gantt.traces import TWO as WHOLE

TRACE = Trace(
    origin="simulated",
    lanes=((0,), (1, 2)),
    lane=(0, 1, 1, 0, 0),
    stage=(0, 1, 1, 0, 0),
    micro_batch=(0, 0, 0, 0, 0),
    kinds="FFBBR",
    start_ns=(0, 10, 20, 40, 60),
    end_ns=(10, 20, 40, 60, 70),
    total_ns=70,
)


def test_one_column_for_each_nanosecond() -> None:
    first, second = timeline(gantt(TRACE), columns=77)
    assert first == "gpu0   F0========..............................B0------------------R#########"
    assert second == "gpu1-2 ..........F0========B0------------------.............................."


def test_the_lines_may_end_before_the_trace_does() -> None:
    first, second = timeline(gantt(TRACE, until_ns=30), columns=37)
    assert first == "gpu0   F0========...................."
    assert second == "gpu1-2 ..........F0========B0--------"


def test_the_legend_explains_every_sign_that_occurs() -> None:
    told = legend(gantt(TRACE))
    assert told == "F0= forward, B0- backward, R# all-reduce, . idle; the number is the micro-batch"


@pytest.mark.parametrize("micro_batches", [3, 8])
def test_a_periodic_schedule_is_drawn_until_the_micro_batches_asked_for_are_done(micro_batches: int) -> None:
    (drawing,) = draw("1f1b*", micro_batches=micro_batches)
    assert drawing.shown == micro_batches
    first = str(drawing).splitlines()[1]
    assert f"B{micro_batches - 1}" in first
    assert f"B{micro_batches}" not in first


@pytest.mark.parametrize("columns", [30, 80, 200])
def test_lines_are_as_wide_as_asked(columns: int) -> None:
    assert {len(line) for line in timeline(gantt(TRACE), columns)} == {columns}


def test_a_label_that_does_not_fit_is_not_cut() -> None:
    (drawing,) = draw("gpipe", stages=1, micro_batches=30)
    (line,) = timeline(drawing.gantt, columns=95)
    late = "B-" * 20
    early = "".join(f"B{micro_batch}" for micro_batch in reversed(range(10)))
    assert line == f"gpu0 {'F' * 30}{late}{early}"


@pytest.mark.parametrize(
    ("scheduler", "total", "live"), [("gpipe", 33.0, (8, 8, 8, 8)), ("1f1b", 33.0, (4, 3, 2, 1))]
)
def test_bubble_and_flight_of_equal_stages(scheduler: str, total: float, live: tuple[int, ...]) -> None:
    """(m + S - 1)(f + b) and the bubble (S - 1) / (m + S - 1), for 4 stages and 8 micro-batches."""
    (drawing,) = draw(scheduler)
    assert drawing.total == pytest.approx(total)
    assert drawing.bubble == pytest.approx(3 / 11)
    assert drawing.live == live
    assert str(drawing).startswith(f"{scheduler}\ngpu0 F0")


def test_a_periodic_schedule_has_no_bubble_between_equal_stages() -> None:
    (drawing,) = draw("1f1b*", transfer=0.25)
    assert drawing.total == pytest.approx(3.0)
    assert drawing.bubble == pytest.approx(0.0)
    # one transfer item between two stages makes a group of its own: 2 (P - i) + 1 (MadPipe, uniform chain)
    assert drawing.live == (7, 5, 3, 1)


@pytest.mark.parametrize("columns", [80, 200])
def test_links_and_memory_stand_below_at_any_width(columns: int) -> None:
    lines = timeline(gantt(WHOLE), columns)
    assert {len(line) for line in lines} == {columns}
    assert [line.split()[0] for line in lines] == ["gpu0", "gpu1-2", "0>1", "1>0", "mem0", "mem1", "mem2"]
    width = columns - len("gpu1-2 ")
    sent, back = lines[2].index(">", 5) - 7, lines[3].index("<") - 7
    assert sent == round(10 / 74 * width)
    assert back == round(42 / 74 * width)


def test_memory_is_in_tenths_of_the_peak() -> None:
    of = timeline(gantt(WHOLE), columns=7 + 74)[4][7:]
    assert of == "2" * 10 + "#" * 55 + "5" * 9
    assert "memory in tenths of its peak, # the peak" in legend(gantt(WHOLE))
    assert set(timeline(gantt(WHOLE), columns=81)[6][7:]) == {"0"}


def test_a_transfer_shorter_than_a_column_is_seen() -> None:
    lines = timeline(gantt(WHOLE), columns=7 + 20)
    assert lines[2].count(">") == 2
    assert lines[3].count("<") == 1
