"""What is attached to a row: traces of ranks, or the log of a framework."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.bench.accuracy.run import Run
from pipebench.bench.attachment.same_run import require_same_run
from pipebench.bench.calibration.sources import log_run
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.formats.chrome_trace import GZIP, RankTrace, parse_chrome_trace
from pipebench.formats.files import read_file


@dataclass(frozen=True, slots=True)
class AttachedFiles:
    """log: the run of a framework's log, None where there is none. traces: one a rank."""

    log: Run | None
    traces: tuple[RankTrace, ...]


def attached_files(names: Sequence[str], problem: Problem, plan: Plan) -> AttachedFiles:
    """Read logs and traces; the first bytes say which is which.

    Raises PipebenchError for a file that is neither, for several logs, and for the log of another run.
    """
    device = problem.cluster.devices[0]
    logs: list[Run] = []
    traces: list[RankTrace] = []
    for name in names:
        data = read_file(name)
        log = log_run(data, name, device)
        if log is None:
            if not data.lstrip().startswith((b"{", b"[", GZIP)):
                raise PipebenchError(
                    f"{name}: neither a trace of torch's profiler nor a log that is read",
                    "attach the log of Megatron-LM or torchtitan, or what prof.export_chrome_trace(file) writes",
                )
            traces.append(parse_chrome_trace(data, name))
        else:
            logs.append(log)
    if len(logs) > 1:
        raise PipebenchError(f"{len(logs)} logs, a row has one run", "attach one after the other")
    for run in logs:
        require_same_run(run, problem, plan)
    return AttachedFiles(logs[0] if logs else None, tuple(traces))
