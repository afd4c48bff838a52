"""The rules of the trace event format (object form) that viewers rely on, as a check."""

from typing import Any

PHASES = {"X", "M", "C", "s", "f"}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}


def broken_rules(document: Any) -> list[str]:
    """What is wrong with a trace; empty when nothing is."""
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        return ["an object with a list traceEvents"]
    wrong = [] if document.get("displayTimeUnit") in ("ms", "ns") else ["displayTimeUnit is ms or ns"]
    for number, event in enumerate(document["traceEvents"]):
        wrong += [f"event {number}: {rule}" for rule in _broken(event)]
    return wrong + [f"flow {rule}" for rule in _broken_flows(document["traceEvents"])]


def _broken_flows(events: list[dict[str, Any]]) -> list[str]:
    """Each start has one end that is not earlier, and both lie inside a slice of their thread."""
    starts = [event for event in events if event.get("ph") == "s"]
    ends = [event for event in events if event.get("ph") == "f"]
    wrong = []
    if sorted(event["id"] for event in starts) != sorted({event["id"] for event in ends}) or len(starts) != len(
        ends
    ):
        wrong.append("starts and ends are not pairs")
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event.get("ph") == "X" and _number(event.get("ts")) and _number(event.get("dur")):
            slices.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for event in (*starts, *ends):
        inside = slices.get((event["pid"], event["tid"]), [])
        if not any(start == event["ts"] or start < event["ts"] < end for start, end in inside):
            wrong.append(f"{event['id']}: {event['ph']} at {event['ts']} is in no slice")
    used = {event["id"]: event["ts"] for event in ends}
    wrong += [f"{each['id']} ends before it starts" for each in starts if used.get(each["id"], 0) < each["ts"]]
    return wrong


def _broken(event: dict[str, Any]) -> list[str]:
    phase = event.get("ph")
    rules = [
        (phase in PHASES, f"phase {phase!r}"),
        (isinstance(event.get("name"), str) and event.get("name") != "", "a name"),
        (type(event.get("pid")) is int, "pid is an integer"),
    ]
    if phase == "M":
        key = METADATA.get(event.get("name", ""))
        rules.append((key is not None and key in event.get("args", {}), "metadata has its argument"))
    else:
        rules.append((_number(event.get("ts")) and event["ts"] >= 0, "ts is a number of microseconds"))
    if phase == "X":
        rules.append((_number(event.get("dur")) and event["dur"] >= 0, "dur is a number, not negative"))
        rules.append((type(event.get("tid")) is int, "tid is an integer"))
    if phase in ("s", "f"):
        rules.append((type(event.get("tid")) is int, "tid is an integer"))
        rules.append((type(event.get("id")) is int, "a flow has an id"))
        rules.append((bool(event.get("cat")), "a flow has a category"))
        rules.append((event.get("bp") == ("e" if phase == "f" else None), "the end of a flow binds to its slice"))
    if phase == "C":
        values = event.get("args", {}).values()
        rules.append((bool(values) and all(map(_number, values)), "counters are numbers"))
    return [rule for holds, rule in rules if not holds]


def _number(value: Any) -> bool:
    return type(value) in (int, float)
