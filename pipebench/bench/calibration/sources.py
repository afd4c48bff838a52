"""Measured runs out of files: tables of runs, and logs of training frameworks, each of which is one run."""

from collections.abc import Sequence

from pipebench.bench.accuracy.reader import PUBLISHED, parse_runs, read_runs
from pipebench.bench.accuracy.run import Run
from pipebench.bench.calibration.megatron_log import is_megatron_log, megatron_run
from pipebench.bench.calibration.torchtitan_log import is_torchtitan_log, torchtitan_run
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_RUNS
from pipebench.formats.files import read_file
from pipebench.formats.typed_text import table_text

LOGS = ((is_megatron_log, megatron_run), (is_torchtitan_log, torchtitan_run))


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


def log_run(data: bytes, name: str, device: str | None) -> Run | None:
    """The run of a log; None where the file is none. device: that it ran on.

    Raises PipebenchError as the readers of logs do, and for a log without a device.
    """
    for is_log, read in LOGS:
        if is_log(data):
            if device is None:
                raise PipebenchError(f"{name}: a log does not say its device", "name it with --device")
            return read(table_text(data, name), name, device)
    return None
