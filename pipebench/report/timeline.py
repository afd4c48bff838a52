"""A trace as text: one line a lane, time from left to right."""

from pipebench.domain.trace import Trace

FILL = {"F": "=", "B": "-", "I": "-", "W": "~", "R": "#"}
IDLE = "."
SMALLEST_WIDTH = 20
MEANING = {"F": "forward", "B": "backward", "I": "input gradient", "W": "weight gradient", "R": "all-reduce"}


def timeline(trace: Trace, columns: int = 80, until_ns: int | None = None) -> list[str]:
    """The lines. F0 starts the forward of micro-batch 0, B0 its backward; R is the all-reduce, '.' idle.

    A task narrower than its label shows its kind only; one narrower than a column may vanish. until_ns: where
    the lines end, in place of the end of the trace.
    """
    length_ns = trace.total_ns if until_ns is None else until_ns
    labels = [_lane_label(devices) for devices in trace.lanes]
    margin = max(map(len, labels), default=0) + 1
    width = max(SMALLEST_WIDTH, columns - margin)
    scale = width / max(length_ns, 1)
    rows = [[IDLE] * width for _ in trace.lanes]
    for lane, stage, micro_batch, kind, start, end in zip(
        trace.lane, trace.stage, trace.micro_batch, trace.kinds, trace.start_ns, trace.end_ns, strict=True
    ):
        del stage
        first, last = round(start * scale), min(round(end * scale), width)
        if last > first:
            rows[lane][first:last] = _task(kind, micro_batch, last - first)
    return [f"{label:<{margin}}{''.join(row)}" for label, row in zip(labels, rows, strict=True)]


def legend(trace: Trace) -> str:
    """What letters, numbers and fill mean, for the kinds of tasks that occur."""
    number = {kind: "" if kind == "R" else "0" for kind in MEANING}
    told = [f"{kind}{number[kind]}{FILL[kind]} {MEANING[kind]}" for kind in MEANING if kind in trace.kinds]
    return ", ".join([*told, f"{IDLE} idle"]) + "; the number is the micro-batch"


def _task(kind: str, micro_batch: int, width: int) -> str:
    label = kind if kind == "R" or len(f"{kind}{micro_batch}") > width else f"{kind}{micro_batch}"
    return label.ljust(width, FILL[kind])


def _lane_label(devices: tuple[int, ...]) -> str:
    return f"gpu{devices[0]}" if len(devices) == 1 else f"gpu{devices[0]}-{devices[-1]}"
