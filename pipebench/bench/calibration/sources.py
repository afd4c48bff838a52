"""Measured runs out of files: tables of runs, and logs of training frameworks, each of which is one run."""

import codecs
import re
import statistics
from collections.abc import Sequence

from msgspec.structs import replace

from pipebench.bench.accuracy.reader import PUBLISHED, parse_runs, read_runs
from pipebench.bench.accuracy.run import Run
from pipebench.bench.calibration.megatron_log import is_megatron_log, megatron_run
from pipebench.bench.calibration.torchtitan_log import is_torchtitan_log, torchtitan_run
from pipebench.bench.traced_step import median_iteration
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.limits import MOST_RUNS, MOST_SECONDS
from pipebench.domain.value import Value
from pipebench.formats.chrome_trace import parse_chrome_trace
from pipebench.formats.files import read_file
from pipebench.formats.typed_text import table_text

TRACE_WARM_UP = 1
"""Iterations of a trace that are dropped at the start."""
LOGS = ((is_megatron_log, megatron_run), (is_torchtitan_log, torchtitan_run))
TIMES_ALONE = {
    "DeepSpeed": (b"iter time (s): ", b"RunningAvgSamplesPerSec="),
    "NeMo": (b"train_step_timing in s",),
    "nanotron": (b"elapsed_time_per_iteration_ms: ",),
}
"""Lines of frameworks that say times, where no line says the model or the degrees. Of DeepSpeed they are of its
pipeline engine and of its timer.
"""
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,16}m")


def measured_runs(names: Sequence[str], device: str | None) -> tuple[Run, ...]:
    """The runs of all files, ids made different. device: that logs are from, which say none.

    Raises PipebenchError for a file that cannot be read or is neither a table nor a log, with the place in it.
    """
    found: dict[str, Run] = {}
    for name in names:
        for run in _runs(name, device):
            if run.id in found:
                raise PipebenchError(
                    f"{name}: a run called {run.id!r} was read before", "give each run its own id"
                )
            found[run.id] = run
        if len(found) > MOST_RUNS:
            raise PipebenchError(f"more than {MOST_RUNS} runs")
    return tuple(found.values())


def _runs(name: str, device: str | None) -> tuple[Run, ...]:
    if name == PUBLISHED:
        return read_runs(name)
    data = read_file(name)
    log = log_run(data, name, device)
    return parse_runs(data, name) if log is None else (log,)


class TracedRun(Value, frozen=True, kw_only=True):
    """What a trace says of a run: its rank, seconds of the kernels of an iteration, of communication, and of the
    communication that no kernel covers.
    """

    rank: int
    iteration_s: float
    kernels_s: float
    communication_s: float
    exposed_s: float


def with_traces(runs: Sequence[Run], given: Sequence[str]) -> tuple[tuple[Run, ...], dict[str, TracedRun]]:
    """Runs whose measured time is that of a trace, and what the traces say. given: `RUN=FILE`, by the runs' ids.

    Raises PipebenchError for a text of another form, for a run that is not there, and for a file that is no trace.
    """
    by_id = {run.id: run for run in runs}
    traced: dict[str, TracedRun] = {}
    for text in given:
        identifier, _, file = text.rpartition("=")
        if not identifier or not file:
            raise PipebenchError(f"--trace {text}: it says no run and its file", "write --trace RUN=FILE")
        if identifier not in by_id:
            raise PipebenchError(f"--trace {text}: no run {identifier!r}", nearest(identifier, by_id))
        if identifier in traced:
            raise PipebenchError(f"--trace {text}: the run has a trace", "give one rank of a run")
        trace = parse_chrome_trace(read_file(file), file, any_rank=True)
        if len(trace.steps) <= TRACE_WARM_UP:
            raise PipebenchError(
                f"{file}: it has {len(trace.steps)} iterations, the first {TRACE_WARM_UP} of a trace do not count",
                "trace more iterations",
            )
        steps_s = [(end - start) / NS_PER_S for start, end in trace.steps[TRACE_WARM_UP:]]
        parts = median_iteration(trace, TRACE_WARM_UP)
        run = by_id[identifier]
        if trace.rank < 0 and run.pp != 1:
            raise PipebenchError(
                f"{file}: it does not say its rank, and the stages of run {identifier!r} differ",
                "trace with torch.distributed initialised, then the trace says it",
            )
        rank = max(trace.rank, 0)
        if rank >= run.gpus:
            raise PipebenchError(f"{file}: it is of rank {rank}, run {identifier!r} has {run.gpus} devices")
        seconds = statistics.median(steps_s)
        if not 0 < seconds <= MOST_SECONDS or not parts.kernels_ns:
            raise PipebenchError(f"{file}: its iterations take no time, or have no kernels")
        how = f"median of {len(steps_s)} traced iterations, {TRACE_WARM_UP} dropped"
        by_id[identifier] = replace(run, iter_s=seconds, how_read=how)
        traced[identifier] = TracedRun(
            rank=rank,
            iteration_s=parts.iteration_ns / NS_PER_S,
            kernels_s=parts.kernels_ns / NS_PER_S,
            communication_s=parts.communication_ns / NS_PER_S,
            exposed_s=parts.exposed_ns / NS_PER_S,
        )
    return tuple(by_id.values()), traced


def log_run(data: bytes, name: str, device: str | None) -> Run | None:
    """The run of a log; None where the file is none. device: that it ran on.

    Colours are taken off, and a letter that is none is no error: ranks write over each other.
    Raises PipebenchError as the readers of logs do, for a log without a device, and for one that says times alone.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        data = data.decode("utf-16", "replace").encode()
    for is_log, read in LOGS:
        if is_log(data):
            if device is None:
                raise PipebenchError(f"{name}: a log does not say its device", "name it with --device")
            return read(_COLOUR.sub("", table_text(data, name, "replace")), name, device)
    for framework, lines in TIMES_ALONE.items():
        if not data.startswith(b"{") and any(line in data for line in lines):
            raise PipebenchError(
                f"{name}: a log of {framework}, which says times and neither the model nor the degrees",
                "write its runs into a table (columns: docs/reference/runs.md), "
                "or attach traces of torch's profiler",
            )
    return None
