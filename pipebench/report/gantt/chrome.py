"""A timeline as Chrome trace events, which Perfetto and chrome://tracing open: tasks, messages and memory."""

import json
from collections.abc import Iterator
from typing import Any

from pipebench.report.gantt.gantt import MEANING, Gantt

LINKS = 1_000_000
"""The process of all links; devices are processes of their own row number."""


def chrome_trace(gantt: Gantt) -> str:
    """JSON in the object form of the trace event format; instants in microseconds from the start.

    Arrows lead from each transfer to the task that uses what it carries.
    """
    events = [*_names(gantt), *_spans(gantt), *_flows(gantt), *_counters(gantt)]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"title": gantt.title}})


def _places(gantt: Gantt) -> list[tuple[int, int]]:
    """Process and thread of each row."""
    links = 0
    places = []
    for position, row in enumerate(gantt.rows):
        places.append((LINKS, links) if row.link else (position, 0))
        links += row.link
    return places


def _names(gantt: Gantt) -> Iterator[dict[str, Any]]:
    named: set[int] = set()
    for (process, thread), row in zip(_places(gantt), gantt.rows, strict=True):
        if process not in named:
            named.add(process)
            name = "links" if row.link else row.label
            yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
            yield {"ph": "M", "name": "process_sort_index", "pid": process, "args": {"sort_index": process}}
        thread_name = row.label if row.link else "compute"
        yield {"ph": "M", "name": "thread_name", "pid": process, "tid": thread, "args": {"name": thread_name}}


def _spans(gantt: Gantt) -> Iterator[dict[str, Any]]:
    for (process, thread), row in zip(_places(gantt), gantt.rows, strict=True):
        for bar in row.bars:
            yield {
                "ph": "X",
                "name": bar.label,
                "cat": MEANING.get(bar.kind, "tasks"),
                "pid": process,
                "tid": thread,
                "ts": bar.start_ns / 1e3,
                "dur": (bar.end_ns - bar.start_ns) / 1e3,
                "args": {"stage": bar.stage, "micro_batch": bar.micro_batch},
            }


def _flows(gantt: Gantt) -> Iterator[dict[str, Any]]:
    """Two events for each arrow. `bp` binds its head to the slice that starts there, not to the next one."""
    place_of = {row.key: place for place, row in zip(_places(gantt), gantt.rows, strict=True)}
    shown = [each for each in gantt.arrows if each.sender in place_of and each.user in place_of]
    for number, each in enumerate(shown):
        named = {"name": each.label, "cat": "message", "id": number}
        process, thread = place_of[each.sender]
        yield {"ph": "s", **named, "pid": process, "tid": thread, "ts": each.sent_ns / 1e3}
        process, thread = place_of[each.user]
        yield {"ph": "f", "bp": "e", **named, "pid": process, "tid": thread, "ts": each.used_ns / 1e3}


def _counters(gantt: Gantt) -> Iterator[dict[str, Any]]:
    """Bytes in use, on the process of the row that the device is in."""
    process_of = {
        device: process
        for (process, _), row in zip(_places(gantt), gantt.rows, strict=True)
        if not row.link
        for device in row.devices
    }
    for each in gantt.memory:
        process = process_of.get(each.device, LINKS)
        for instant, amount in zip(each.time_ns, each.bytes, strict=True):
            yield {
                "ph": "C",
                "name": f"memory of gpu{each.device}",
                "pid": process,
                "ts": instant / 1e3,
                "args": {"bytes": amount},
            }
