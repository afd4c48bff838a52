"""Runs as people read them: simulated beside measured, stored trials run again."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.bench.execution import Execution, MemoryGap, StageGap
from pipebench.bench.reproduction.rerun import FieldChange, Rerun
from pipebench.domain.trace import Trace
from pipebench.report.gantt.gantt import gantt
from pipebench.report.gantt.text import legend, timeline
from pipebench.report.text.tables import print_table
from pipebench.report.units import gigabytes, percent, seconds

SHOWN_PERIODS = 12


def execution_lines(execution: Execution, columns: int) -> Iterator[str]:
    """Seconds of a mini-batch and their distance, both timelines on one scale, and the stages."""
    yield (
        f"simulated {seconds(execution.simulated_s)}, measured {seconds(execution.measured_s)} a mini-batch"
        + _off(execution.error, ": the simulation is {} off")
    )
    yield (
        f"with the measured times of its tasks the simulation takes {seconds(execution.replayed_s)}"
        + _off(execution.replayed_error, ": {} off, in messages, all-reduces and idle time")
    )
    until_ns = max(_shown_until_ns(execution.simulated), _shown_until_ns(execution.measured))
    for name, trace in (("simulated", execution.simulated), ("measured", execution.measured)):
        yield f"{name}:"
        yield from timeline(gantt(trace, until_ns=until_ns), columns)
    yield legend(gantt(execution.measured))
    for each in execution.stages:
        yield _stage_line(each, "forward and backward")
    for each in execution.all_reduces:
        yield _stage_line(each, "all-reduce")
    for device in execution.memory:
        yield _memory_line(device)
    yield from execution.notices


def _off(error: float | None, words: str) -> str:
    return "" if error is None else words.format(percent(error))


def _stage_line(each: StageGap, what: str) -> str:
    apart = (each.simulated_s - each.measured_s) / each.measured_s if each.measured_s else None
    return (
        f"stage {each.stage}: {what} {seconds(each.simulated_s)} simulated, "
        f"{seconds(each.measured_s)} measured, {percent(apart)}"
    )


def _memory_line(each: MemoryGap) -> str:
    apart = (each.simulated_bytes - each.measured_bytes) / each.measured_bytes
    return (
        f"gpu{each.device}: at most {gigabytes(each.simulated_bytes)} simulated, "
        f"{gigabytes(each.measured_bytes)} measured, {percent(apart)}"
    )


def _shown_until_ns(trace: Trace) -> int:
    """A whole mini-batch; of a run without end the beginning."""
    return trace.total_ns if trace.period_ns is None else min(trace.total_ns, SHOWN_PERIODS * trace.period_ns)


STYLE = {"same": "green", "different": "red", "not runnable": "yellow"}


def print_reruns(console: Console, done: Sequence[Rerun]) -> None:
    """A line for each row, what differs under it, and one summary."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("key", "planner", "problem"):
        table.add_column(column, overflow="fold")
    table.add_column("search", justify="right", no_wrap=True)
    table.add_column("mark", no_wrap=True)
    for each in done:
        ratio = "-" if each.search_ratio is None else f"{each.search_ratio:.2f} x"
        table.add_row(
            each.key[:8],
            each.planner,
            each.problem,
            ratio,
            Text(each.mark, style=STYLE[each.mark]),
        )
    print_table(console, table)
    for each in done:
        if each.reason:
            console.print(Text(f"  {each.key[:8]}: {each.reason}"), soft_wrap=True)
        for change in each.columns:
            console.print(Text(f"  {each.key[:8]}: {_rerun_line(change)}"), soft_wrap=True)
    for change in dict.fromkeys(change for each in done for change in each.surroundings):
        console.print(Text(f"  differs now: {_rerun_line(change)}"), soft_wrap=True)
    counts = Counter[str](each.mark for each in done)
    console.print(", ".join(f"{counts[mark]} {mark}" for mark in STYLE if counts[mark]))


def _rerun_line(change: FieldChange) -> str:
    return f"{change.field}: {change.before} → {change.after}"
