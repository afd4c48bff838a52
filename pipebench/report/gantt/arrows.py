"""From each message to the task that uses it."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.domain.schedule import BACKWARD
from pipebench.domain.trace import Trace

RowKey = tuple[int, ...] | str
"""The devices of a lane, or the label of a link."""
BEFORE_END_NS = 1
"""A message that takes no time leaves the task that makes it so long before its end."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message. It starts in its transfer, or in the task that makes it where the transfer takes no time."""

    label: str
    sender: RowKey
    sent_ns: int
    user: RowKey
    used_ns: int


@dataclass(frozen=True, slots=True)
class _Task:
    number: int
    start_ns: int
    end_ns: int
    lane: int


def link_label(source: int, target: int) -> str:
    """A link by the stages at its ends."""
    return f"{source}>{target}"


def arrows_of(trace: Trace) -> Iterator[Arrow]:
    """An arrow for each message whose task is known, but none inside a lane.

    The task is the first of the receiving stage that works on the message's samples and starts after its arrival.
    """
    tasks = _tasks(trace)
    columns = trace.source, trace.target, trace.message, trace.transfer_kinds
    times = trace.transfer_start_ns, trace.transfer_end_ns
    for source, target, message, kind, start, end in zip(*columns, *times, strict=True):
        makers, users = tasks.get((source, kind), []), tasks.get((target, kind), [])
        maker, user = _maker(makers, message), _user(makers, users, message, end, trace.period_ns is not None)
        if user is None:
            continue
        label, used = f"{kind.lower()}{message}", trace.lanes[user.lane]
        if end > start:
            yield Arrow(label, link_label(source, target), start, used, user.start_ns)
        elif maker is not None and maker.lane != user.lane and maker.end_ns > maker.start_ns:
            sent_ns = min(maker.end_ns - BEFORE_END_NS, user.start_ns)
            yield Arrow(label, trace.lanes[maker.lane], sent_ns, used, user.start_ns)


def _tasks(trace: Trace) -> dict[tuple[int, str], list[_Task]]:
    """Forwards and backwards (input gradients, where they are apart) of each stage, by micro-batch."""
    found: dict[tuple[int, str], list[_Task]] = {}
    columns = trace.stage, trace.kinds, trace.micro_batch, trace.start_ns, trace.end_ns, trace.lane
    for stage, kind, *task in zip(*columns, strict=True):
        if kind in "FBI":
            found.setdefault((stage, BACKWARD if kind == "I" else kind), []).append(_Task(*task))
    for each in found.values():
        each.sort(key=lambda task: task.number)
    return found


def _maker(makers: list[_Task], message: int) -> _Task | None:
    at = bisect_left(makers, message, key=lambda task: task.number)
    return makers[at] if at < len(makers) and makers[at].number == message else None


def _user(makers: list[_Task], users: list[_Task], message: int, end_ns: int, periodic: bool) -> _Task | None:
    """Stages of other micro-batch sizes have other numbers of micro-batches for the same samples."""
    at = bisect_left(users, message, key=lambda task: task.number)
    if not periodic and len(makers) != len(users):
        at = bisect_left(makers, message, key=lambda task: task.number) * len(users) // max(1, len(makers))
    return next((task for task in users[at:] if task.start_ns >= end_ns), None)
