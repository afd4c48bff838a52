"""The rules of the trace event format (object form) that viewers rely on, as a check."""

from typing import Any

PHASES = {"X", "M", "C"}
METADATA = {"process_name": "name", "thread_name": "name", "process_sort_index": "sort_index"}


def broken_rules(document: Any) -> list[str]:
    """What is wrong with a trace; empty when nothing is."""
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        return ["an object with a list traceEvents"]
    wrong = [] if document.get("displayTimeUnit") in ("ms", "ns") else ["displayTimeUnit is ms or ns"]
    for number, event in enumerate(document["traceEvents"]):
        wrong += [f"event {number}: {rule}" for rule in _broken(event)]
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
    if phase == "C":
        values = event.get("args", {}).values()
        rules.append((bool(values) and all(map(_number, values)), "counters are numbers"))
    return [rule for holds, rule in rules if not holds]


def _number(value: Any) -> bool:
    return type(value) in (int, float)
