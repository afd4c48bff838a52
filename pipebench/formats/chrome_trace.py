"""Chrome JSON of torch's profiler, one file a rank: iterations, where their time goes, messages between ranks."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import msgspec

from pipebench.documents.decoding import MALFORMED, bounded_json, collector_paused, gunzip
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_CLOCK_NS, MOST_TRACE_ELEMENTS
from pipebench.formats.files import read_file
from pipebench.formats.spans import Span, merge_spans, subtract_spans

_NUMBER = r"\d{1,9}"
_STEP = re.compile(rf"ProfilerStep#({_NUMBER})", re.ASCII)
_NCCL = re.compile(rf"nccl:(send|recv) ({_NUMBER})(?:->|<-)({_NUMBER})(?!\d)", re.ASCII)
_TASK = re.compile(
    rf"PP:(?P<stage>{_NUMBER})(?P<kind>[FBIW])(?P<number>{_NUMBER})"
    rf"|(?P<word>Forward|Backward) (?P<count>{_NUMBER})",
    re.ASCII,
)
"""Marks of torch.distributed.pipelining: of schedules that run several stages, and of those that run one."""
_COMMUNICATION = re.compile(r"(gloo:|nccl|c10d::|record_param_comms|ProfilerStep)", re.IGNORECASE)
TraceWork = Literal["kernels", "optimizer", "tensor_parallel", "gradients", "collectives", "messages"]
"""What a rank does: kernels of the model; of the optimizer; collectives of tensor parallelism, of gradients, and
of groups that the trace does not name; messages between stages."""
WORK: tuple[TraceWork, ...] = get_args(TraceWork)
COMMUNICATION: tuple[TraceWork, ...] = ("tensor_parallel", "gradients", "collectives", "messages")
_OPTIMIZER = re.compile(r"multi_tensor_apply|fused_?adam|adamw?_|::Adam", re.IGNORECASE)
"""Kernels of fused and of multi-tensor optimizers; the passes over gradients before it are among them."""
_ON_WIRE = re.compile(r"nccl(?:Dev)?Kernel|nccl:|gloo:", re.IGNORECASE)
_MESSAGE = re.compile(r"sendrecv|nccl:(?:send|recv)|gloo:(?:send|recv)", re.IGNORECASE)
_GROUPS: tuple[tuple[TraceWork, re.Pattern[str]], ...] = (
    ("tensor_parallel", re.compile(r"(?:^|_)(?:tp|tensor)(?:_|$)", re.IGNORECASE)),
    ("messages", re.compile(r"(?:^|_)(?:pp|pipeline)(?:_|$)", re.IGNORECASE)),
    ("gradients", re.compile(r"(?:^|_)(?:dp|data|fsdp|replicate|shard)(?:_|$)", re.IGNORECASE)),
)
"""Descriptions of process groups, as Megatron-LM and torchtitan give them."""
UNREADABLE = (*MALFORMED, TypeError, OverflowError)
GZIP = b"\x1f\x8b"


class Event(msgspec.Struct):
    """The fields of an event that are looked at; ts, dur: us."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    ts: Any = None
    dur: Any = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Document(msgspec.Struct, rename="camel"):
    trace_events: list[Event]
    distributed_info: dict[str, Any] | None = None
    base_time_nanoseconds: Any = 0


@dataclass(frozen=True, slots=True)
class RankMessage:
    """One end of a message: the other rank, its tag, and when it began and ended here, in ns."""

    peer: int
    tag: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class TaskSpan:
    """A marked task: what one stage does for one micro-batch. stage: None where the mark does not say it. kind: F,
    B, I or W.
    """

    stage: int | None
    kind: str
    micro_batch: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class RankTrace:
    """One rank, ns of its own clock. rank: -1 where the trace does not say it. steps: start and end of each
    iteration. sent, got: in order of time. busy: spans of work other than communication, merged. tasks: those that
    torch's pipelines mark, or a user like them. work: spans of each kind of work that none before it in WORK
    covers, so that no time counts twice. communication: spans of all of it, covered or not.
    """

    rank: int
    steps: tuple[Span, ...]
    sent: tuple[RankMessage, ...]
    got: tuple[RankMessage, ...]
    busy: tuple[Span, ...]
    tasks: tuple[TaskSpan, ...] = ()
    work: Mapping[TraceWork, tuple[Span, ...]] = field(default_factory=dict)
    communication: tuple[Span, ...] = ()


def read_chrome_trace(path: str) -> RankTrace:
    """The trace of one rank, gzip or plain. Raises PipebenchError when it is none, or marks no iterations.

    Messages name their other rank where the profiler was told to record shapes (gloo), or by name (NCCL).
    """
    return parse_chrome_trace(read_file(path), path)


def parse_chrome_trace(data: bytes, path: str, any_rank: bool = False) -> RankTrace:
    """The trace that a file holds, see `read_chrome_trace`. path: for errors. any_rank: it need not say which."""
    try:
        text = bounded_json(gunzip(data, path) if data[:2] == GZIP else data, path, MOST_TRACE_ELEMENTS)
        with collector_paused():
            document = msgspec.json.decode(text, type=_Document)
        listed = [event for event in document.trace_events if event.ph == "X" and event.dur is not None]
        rank = int((document.distributed_info or {}).get("rank", -1))
        base_ns = int(document.base_time_nanoseconds or 0)
        _require_ns(path, "baseTimeNanoseconds", base_ns)
        spans = [_span(event, base_ns, path) for event in listed]
        events = sorted(zip(spans, listed, strict=True), key=lambda pair: pair[0])
    except PipebenchError:
        raise
    except UNREADABLE as error:
        opens = data[:2] == GZIP or b'"traceEvents"' in data
        if opens and isinstance(error, msgspec.DecodeError) and "truncated" in str(error):
            raise PipebenchError(
                f"{path}: a trace that ends in the middle",
                "let the profiler write it to its end before the job ends",
            ) from None
        hint = "write it with torch.profiler: prof.export_chrome_trace(file)"
        raise PipebenchError(f"{path}: not a trace of torch's profiler", hint) from None
    steps = _steps(events)
    if not steps:
        hint = (
            "give the profiler a schedule, call its step() after each mini-batch, write the file in on_trace_ready"
        )
        raise PipebenchError(f"{path}: it marks no iterations", hint)
    if rank < 0 and not any_rank:
        raise PipebenchError(f"{path}: it does not say its rank", "profile after init_process_group")
    on_card = any(event.cat == "kernel" for _, event in events)
    work, communication = _work(events, on_card)
    return RankTrace(
        rank=rank,
        steps=steps,
        sent=_messages(events, "send", "c10d::send"),
        got=_messages(events, "recv", "c10d::recv_"),
        busy=merge_spans([span for span, event in events if _works(event, on_card)]),
        tasks=_tasks(events),
        work=work,
        communication=communication,
    )


def _steps(events: Sequence[tuple[Span, Event]]) -> tuple[Span, ...]:
    """Iterations in their order. The host's spans count: the card's have no time between the last and the next
    kernel. Of one number the last span.
    """
    marked = [(event.cat, int(found[1]), span) for span, event in events if (found := _STEP.fullmatch(event.name))]
    by_host = [each for each in marked if each[0] != "gpu_user_annotation"]
    steps = {number: span for _, number, span in by_host or marked}
    return tuple(steps[number] for number in sorted(steps))


def _work(
    events: Sequence[tuple[Span, Event]], on_card: bool
) -> tuple[dict[TraceWork, tuple[Span, ...]], tuple[Span, ...]]:
    """Spans by what they are, without the time that an earlier kind covers; and all communication."""
    found: dict[TraceWork, list[Span]] = {kind: [] for kind in WORK}
    for span, event in events:
        kind = _kind_of_work(event, on_card)
        if kind is not None:
            found[kind].append(span)
    covered: tuple[Span, ...] = ()
    made: dict[TraceWork, tuple[Span, ...]] = {}
    for kind in WORK:
        merged = merge_spans(found[kind])
        made[kind] = subtract_spans(merged, covered)
        covered = merge_spans((*covered, *merged))
    return made, merge_spans(span for kind in COMMUNICATION for span in found[kind])


def _kind_of_work(event: Event, on_card: bool) -> TraceWork | None:
    """None for what is no work of a device: marks, calls of the host beside a card, spans that hold others."""
    if _ON_WIRE.match(event.name) and (not on_card or event.cat == "kernel"):
        group = _group_of(event)
        named = next((kind for kind, rule in _GROUPS if rule.search(group)), None)
        return named or ("messages" if _MESSAGE.search(event.name) else "collectives")
    if _works(event, on_card):
        return "optimizer" if _OPTIMIZER.search(event.name) else "kernels"
    return None


def _group_of(event: Event) -> str:
    """The description of the process group, empty where there is none."""
    try:
        return msgspec.json.decode(event.args, type=_GroupArguments).description
    except UNREADABLE:
        return ""


def _tasks(events: Sequence[tuple[Span, Event]]) -> tuple[TaskSpan, ...]:
    """Marked tasks; where the card's own spans of the marks are there, those."""
    marked = [(span, event, found) for span, event in events if (found := _TASK.fullmatch(event.name))]
    on_card = [each for each in marked if each[1].cat == "gpu_user_annotation"]
    return tuple(
        TaskSpan(
            stage=int(found["stage"]) if found["stage"] else None,
            kind=found["kind"] or found["word"][0],
            micro_batch=int(found["number"] or found["count"]),
            start_ns=span[0],
            end_ns=span[1],
        )
        for span, _, found in on_card or marked
    )


def _span(event: Event, base_ns: int, path: str) -> Span:
    """Raises PipebenchError for a time that no clock shows."""
    start, length = float(event.ts) * 1e3, float(event.dur) * 1e3
    if not (abs(start) <= MOST_CLOCK_NS and 0 <= length <= MOST_CLOCK_NS):
        what = f"event {event.name[:40]!r}"
        _require_ns(path, f"ts of {what}", start)
        _require_ns(path, f"dur of {what}", length)
        raise PipebenchError(f"{path}: dur of {what} is negative", "no event ends before it begins")
    begin = base_ns + round(start)
    return begin, begin + round(length)


def _require_ns(path: str, what: str, value: float) -> None:
    if not (math.isfinite(value) and abs(value) <= MOST_CLOCK_NS):
        raise PipebenchError(f"{path}: {what} is {value:g} ns", f"times are finite and at most {MOST_CLOCK_NS} ns")


def _works(event: Event, on_card: bool) -> bool:
    """A kernel of the card; where the trace has none, an operator of the processor."""
    return event.cat == ("kernel" if on_card else "cpu_op") and not _COMMUNICATION.match(event.name)


def _messages(events: Sequence[tuple[Span, Event]], way: str, call: str) -> tuple[RankMessage, ...]:
    """Messages of NCCL by their names; of gloo the k-th call, which names the peer, with the k-th span.

    A message of gloo begins with its call: what is sent may be there before the span of it begins.
    """
    named = [
        RankMessage(int(found[3]), 0, *span)
        for span, event in events
        if (found := _NCCL.match(event.name)) and found[1] == way
    ]
    if named:
        return tuple(named)
    calls = [(span, _peer(event)) for span, event in events if event.name == call]
    spans = [span for span, event in events if event.name == f"gloo:{way}"]
    if len(spans) != len(calls):
        spans = [span for span, _ in calls]
    known = zip(calls, spans, strict=True)
    return tuple(RankMessage(*peer, call[0], span[1]) for (call, peer), span in known if peer is not None)


def _peer(event: Event) -> Span | None:
    """Rank and tag: the last two of a call's arguments."""
    try:
        inputs = msgspec.json.decode(event.args, type=_Arguments).inputs
        return int(inputs[-2]), int(inputs[-1])
    except (*MALFORMED, IndexError, TypeError):
        return None


class _GroupArguments(msgspec.Struct):
    description: str = msgspec.field(name="Process Group Description", default="")


class _Arguments(msgspec.Struct):
    inputs: list[Any] = msgspec.field(name="Concrete Inputs")
