"""Chrome traces keep the rules of their format and lose nothing of the timeline."""

import json

import pytest

from pipebench.api import draw
from pipebench.domain.trace import Trace
from pipebench.report.gantt.chrome import chrome_trace
from pipebench.report.gantt.gantt import gantt
from tests.report.gantt.trace_events import broken_rules
from tests.report.gantt.traces import TWO

EMPTY = Trace(
    origin="simulated",
    lanes=((0,),),
    lane=(),
    stage=(),
    micro_batch=(),
    kinds="",
    start_ns=(),
    end_ns=(),
    total_ns=0,
)


@pytest.mark.parametrize("trace", [TWO, EMPTY, None])
def test_the_rules_of_the_format_hold(trace: Trace | None) -> None:
    """None: of a schedule that is drawn."""
    if trace is None:
        trace = draw("1f1b", transfer=0.5)[0].trace
    assert broken_rules(json.loads(chrome_trace(gantt(trace)))) == []


def test_the_checker_finds_what_is_wrong() -> None:
    good = json.loads(chrome_trace(gantt(TWO)))
    for change in ({"dur": -1}, {"ts": "0"}, {"pid": None}, {"ph": "Q"}, {"name": ""}):
        spoilt = json.loads(json.dumps(good))
        spoilt["traceEvents"][-20 % len(spoilt["traceEvents"])].update(change)
        spoilt["traceEvents"] = [e | (change if e["ph"] == "X" else {}) for e in spoilt["traceEvents"]]
        assert broken_rules(spoilt), change


def test_every_task_transfer_and_figure_of_memory_is_there() -> None:
    events = json.loads(chrome_trace(gantt(TWO)))["traceEvents"]
    spans = [(e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert sorted(spans) == sorted(
        [
            ("F0", 0.0, 0.01),
            ("F0", 0.012, 0.01),
            ("B0", 0.022, 0.02),
            ("B0", 0.044, 0.02),
            ("R", 0.064, 0.01),
            ("f0", 0.01, 0.002),
            ("b0", 0.042, 0.002),
        ]
    )
    counters = [(e["name"], e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C"]
    assert ("memory of gpu0", 0.01, 40) in counters
    assert len(counters) == 6
    named = {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "process_name"}
    assert {name for _, name in named} == {"gpu0", "gpu1-2", "links"}
    process = {name: pid for pid, name in named}
    assert {e["pid"] for e in events if e.get("name") == "memory of gpu2"} == {process["gpu1-2"]}
