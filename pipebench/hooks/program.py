"""A planner that is any program: cmd:./planner reads a problem document on stdin and writes a plan on stdout."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from pipebench.domain.document import decode, encode, kind_of
from pipebench.domain.errors import InfeasibleProblem, PipebenchError, UnsupportedProblem
from pipebench.domain.limits import MOST_OUTPUT_BYTES, MOST_REASON_BYTES
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached

INFEASIBLE_EXIT, UNSUPPORTED_EXIT = 10, 11


def run_program(command: str, problem: Problem, context: Context) -> PlanResult:
    """Run the command and read a document of kind `bare-plan`, `plan` or `result` from its output.

    Exit code 10 means infeasible, 11 unsupported; the last line of stderr is the reason.
    Raises PipebenchError for any other exit code and for output that is no such document.
    Raises DeadlineReached when the time limit passes, after the whole process group was killed.
    """
    words = split_command(command)
    with TemporaryFile() as given, TemporaryFile() as output, TemporaryFile() as errors:
        given.write(encode("problem", problem))
        given.seek(0)
        try:
            process = subprocess.Popen(words, stdin=given, stdout=output, stderr=errors, start_new_session=True)
        except OSError as error:
            raise PipebenchError(f"cmd:{command}: {error.strerror or error}") from None
        _wait(process, context)
        return _result(command, process.returncode, output, errors)


def split_command(command: str) -> list[str]:
    """The words of a command, split as a shell does. The first word names an existing program.

    Raises PipebenchError for an empty command and for a program that is missing or not executable.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise PipebenchError(f"cmd:{command}: {error}", "close every quote") from None
    if "\0" in command:
        raise PipebenchError(f"cmd:{command!r}: a command cannot hold a NUL")
    if not words or not words[0]:
        raise PipebenchError("cmd: names no program", "write cmd:./planner")
    if shutil.which(words[0]) is None:
        raise PipebenchError(f"cmd:{command}: {_why_not(words[0])}", _remedy(words[0]))
    return words


def _why_not(program: str) -> str:
    if "/" not in program:
        return f"no program {program!r} on the PATH"
    path = Path(program)
    if os.path.isdir(path):
        return f"{program!r} is a directory, not a program"
    return f"{program!r} is not executable" if os.path.exists(path) else f"there is no program {program!r}"


def _remedy(program: str) -> str:
    """The remedy where a file of that name exists in this folder, or lacks the right to be run."""
    if not os.path.isfile(program):
        return "write cmd:./planner, or the name of a program on the PATH"
    return f"write cmd:./{program}" if "/" not in program else f"chmod +x {program}"


def _wait(process: "subprocess.Popen[bytes]", context: Context) -> None:
    """Wait until the process itself exits. Processes that it started are killed with it and never waited for.

    The streams are files, because a child that is left behind would hold a pipe open. A timer ends the wait,
    because wait(timeout) polls every 50 ms and would lengthen the search time.
    """
    left = None if context.deadline_s is None else max(0.0, context.deadline_s - time.monotonic())
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill_group(process)

    timer = threading.Timer(min(left, threading.TIMEOUT_MAX), stop) if left is not None else None
    try:
        if timer is not None:
            timer.start()
        process.wait()
    finally:
        if timer is not None:
            timer.cancel()
        _kill_group(process)
        process.wait()
    if late.is_set():
        raise DeadlineReached("the time limit was reached")


def _result(command: str, code: int, output: IO[bytes], errors: IO[bytes]) -> PlanResult:
    last = _tail(errors).decode(errors="replace").strip().splitlines()
    reason = last[-1][:200] if last else f"exit code {code}"
    if code == INFEASIBLE_EXIT:
        raise InfeasibleProblem(reason)
    if code == UNSUPPORTED_EXIT:
        raise UnsupportedProblem(reason)
    if code != 0:
        raise PipebenchError(f"cmd:{command} failed with exit code {code}: {reason}")
    source = f"output of cmd:{command}"
    size = output.seek(0, os.SEEK_END)
    if size > MOST_OUTPUT_BYTES:
        raise PipebenchError(f"{source}: {size} bytes, at most {MOST_OUTPUT_BYTES} are read")
    output.seek(0)
    return _read(output.read(size), source)


def _tail(stream: IO[bytes]) -> bytes:
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - MOST_REASON_BYTES))
    return stream.read(MOST_REASON_BYTES)


def _read(output: bytes, source: str) -> PlanResult:
    kind = kind_of(output, source)
    value = decode(output, kind, source)
    if isinstance(value, PlanResult):
        return value
    if isinstance(value, Plan):
        return PlanResult(plan=value)
    if kind == "plan":
        return PlanResult(plan=value.plan, schedule=value.schedule)
    raise PipebenchError(f"{source}: holds a {kind}, not a plan")


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
