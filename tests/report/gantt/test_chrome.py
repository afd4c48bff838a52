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


def flows(text: str) -> list[tuple[str, float, float]]:
    events = json.loads(text)["traceEvents"]
    ends = {each["id"]: each for each in events if each["ph"] == "f"}
    return [(each["name"], each["ts"], ends[each["id"]]["ts"]) for each in events if each["ph"] == "s"]


def test_an_arrow_leads_from_each_transfer_to_the_task_that_uses_it() -> None:
    assert sorted(flows(chrome_trace(gantt(TWO)))) == [("b0", 0.042, 0.044), ("f0", 0.01, 0.012)]


@pytest.mark.parametrize("scheduler", ["gpipe", "1f1b", "interleaved-1f1b", "zb-v", "chimera", "zb-h1", "1f1b*"])
@pytest.mark.parametrize("transfer", [0.0, 0.25])
def test_every_message_between_devices_has_an_arrow(scheduler: str, transfer: float) -> None:
    trace = draw(scheduler, transfer=transfer, weight=1)[0].trace
    text = chrome_trace(gantt(trace))
    assert broken_rules(json.loads(text)) == []
    lane_of = dict(zip(trace.stage, trace.lane, strict=True))
    between = [
        (source, target)
        for source, target in zip(trace.source, trace.target, strict=True)
        if lane_of[source] != lane_of[target]
    ]
    assert between
    assert len(flows(text)) == len(between)


def test_arrows_between_stages_of_other_micro_batches() -> None:
    """Stage 0 works on 2 samples at a time, stage 1 on 4: it uses messages 0 and 1 at once, then 2 and 3."""
    trace = Trace(
        origin="simulated",
        lanes=((0,), (1,)),
        lane=(0, 0, 0, 0, 1, 1),
        stage=(0, 0, 0, 0, 1, 1),
        micro_batch=(0, 1, 2, 3, 0, 1),
        kinds="FFFFFF",
        start_ns=(0, 10, 20, 30, 25, 45),
        end_ns=(10, 20, 30, 40, 45, 65),
        source=(0,) * 4,
        target=(1,) * 4,
        tensor=(0,) * 4,
        message=(0, 1, 2, 3),
        transfer_kinds="FFFF",
        transfer_start_ns=(10, 20, 30, 40),
        transfer_end_ns=(15, 25, 35, 45),
        total_ns=65,
    )
    text = chrome_trace(gantt(trace))
    assert flows(text) == [("f0", 0.01, 0.025), ("f1", 0.02, 0.025), ("f2", 0.03, 0.045), ("f3", 0.04, 0.045)]


def test_the_checker_finds_arrows_that_lead_nowhere() -> None:
    good = json.loads(chrome_trace(gantt(TWO)))
    for change in ({"id": 77}, {"ts": 9e9}, {"ts": 0.0}, {"bp": "x"}, {"tid": "0"}):
        spoilt = json.loads(json.dumps(good))
        spoilt["traceEvents"] = [e | (change if e["ph"] == "f" else {}) for e in spoilt["traceEvents"]]
        assert broken_rules(spoilt), change
