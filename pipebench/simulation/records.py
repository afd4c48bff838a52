"""The records on which the event loop works: one cache line a task, so that an event touches few of them."""

from typing import Any

import numpy as np

Records = np.ndarray[tuple[int], np.dtype[Any]]
"""An array of records; fields are read as array[i].field inside kernels and array["field"] outside."""

Record = Any
"""One of them, which numba knows and mypy does not."""


def _record(*fields: str) -> np.dtype[Any]:
    return np.dtype([(field, np.int64) for field in fields])


TASK = _record("lane", "sends", "micro_batch", "duration", "following", "waits", "ready", "start")
"""sends: the group of flows that leave when it ends, -1 none. following: the row that waits for it whatever
the messages, -1 none, below that -2 - g for those in row g of TaskTable.followers. waits: inputs that are missing,
-1 once it has started. ready: when the last one so far arrived."""

LANE = _record("at", "end", "free")
"""at: the row that it runs or waits for. end: one past its last row. free: when it is next free."""

GROUP = _record("first", "end")
"""Flows that leave a stage after its F, or after its B or I: a slice of their list."""

FLOW = _record("offset", "duration", "link", "queue", "port_first", "port_end", "slot", "here", "there")
"""Columns of FlowTable; offset is its base, a name that numpy keeps for itself. slot: network.slot_of. here,
there: micro-batch of sender and receiver."""

PORT = _record("port", "occupied")
"""A port that a flow occupies and for how long."""

MESSAGE = _record("flow", "sent", "arrived", "ticket", "next")
"""sent, arrived: instants, -1 never. ticket: above zero once it has lined up. next: the one behind it, or -1."""

LINE = _record("head", "tail")
"""The messages at the ends of a waiting line, -1 when it is empty."""
