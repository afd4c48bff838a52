"""Run a program of somebody else: confined to a scratch folder, with a time limit, its output bounded.

Its CPU time is the kernel's.
"""

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pipebench.bench.searches.isolation.confinement import confine, passed_environment
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MIB, MOST_WRITTEN_BYTES
from pipebench.system.parent import end_with_parent

MOST_PRINTED_BYTES = 16 * MIB
"""Of standard output; of standard error the end is kept."""
MOST_ERROR_BYTES = 2**14
POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class ChildRun:
    """What came of a run.

    code: exit status; negative: the signal that ended it. output: standard output. error: the last line of
    standard error. cpu_s: of the process and all that it waited for. stopped: at its time limit.
    """

    code: int
    output: str
    error: str
    cpu_s: float
    wall_s: float
    stopped: bool


def own_environment(scratch: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of a child: no secrets, homes in the scratch folder, one thread for numerical libraries."""
    passed = passed_environment(os.environ, str(scratch))
    kept = {name: value for name, value in passed.items() if not name.startswith(("PYTHON", "PIPEBENCH_"))}
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return kept | dict.fromkeys(threads, "1") | dict(variables)


def run_child(
    words: Sequence[str],
    scratch: Path,
    environment: Mapping[str, str],
    limit_s: float,
    given: Path | None = None,
) -> ChildRun:
    """Run a command in a scratch folder, which is the only one that it may write in; it has no network.

    given: its standard input. Raises PipebenchError for a command that cannot be started, and where more than
    MOST_PRINTED_BYTES are printed.
    """
    with (
        open(given or os.devnull, "rb") as source,
        open(scratch / "output", "w+b") as output,
        open(scratch / "errors", "w+b") as errors,
    ):
        parent = os.getpid()

        def confined() -> None:
            end_with_parent(parent)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_WRITTEN_BYTES, MOST_WRITTEN_BYTES))
            confine([str(scratch)])
            os.chdir(scratch)  # the folder as it is mounted now

        began_s = time.monotonic()
        try:
            process = subprocess.Popen(
                words,
                stdin=source,
                stdout=output,
                stderr=errors,
                env=dict(environment),
                start_new_session=True,
                preexec_fn=confined,  # noqa: PLW1509 - the command has no other thread
            )
        except (OSError, subprocess.SubprocessError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PipebenchError(f"{words[0]!r} cannot be started: {reason}") from None
        try:
            status, used, stopped = _wait(process.pid, began_s + limit_s)
        except BaseException:
            _kill(process.pid)
            process.wait()
            raise
        wall_s = time.monotonic() - began_s
        _kill(process.pid)  # what it left running
        process.returncode = os.waitstatus_to_exitcode(status)
        return ChildRun(
            code=process.returncode,
            output=_printed(output, words[0]),
            error=_last_line(errors),
            cpu_s=used.ru_utime + used.ru_stime,
            wall_s=wall_s,
            stopped=stopped,
        )


def _wait(process: int, until_s: float) -> tuple[int, resource.struct_rusage, bool]:
    """Wait for the end of a process; it is killed at `until_s` of time.monotonic()."""
    while True:
        found, status, used = os.wait4(process, os.WNOHANG)
        if found:
            return status, used, False
        if time.monotonic() >= until_s:
            _kill(process)
            _, status, used = os.wait4(process, 0)
            return status, used, True
        time.sleep(POLL_S)


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)


def _printed(output: IO[bytes], name: str) -> str:
    output.seek(0)
    data = output.read(MOST_PRINTED_BYTES + 1)
    if len(data) > MOST_PRINTED_BYTES:
        raise PipebenchError(f"{name!r} printed more than {MOST_PRINTED_BYTES // MIB} MiB")
    return data.decode("utf-8", errors="replace")


def _last_line(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - MOST_ERROR_BYTES))
    lines = errors.read().decode("utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
