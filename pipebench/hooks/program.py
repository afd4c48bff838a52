"""A planner that is any program: cmd:./planner reads a problem document on stdin, writes a plan on stdout."""

import contextlib
import os
import shlex
import signal
import subprocess
import time

from pipebench.domain.document import decode, encode, kind_of
from pipebench.domain.errors import InfeasibleProblem, PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context, DeadlineReached

INFEASIBLE_EXIT, UNSUPPORTED_EXIT = 10, 11
MAX_OUTPUT_BYTES = 64 * 2**20


def run_program(command: str, problem: Problem, context: Context) -> PlanResult:
    """Run the command and read a document of kind `bare-plan`, `plan` or `result` from its output.

    Exit code 10 says infeasible and 11 unsupported, the last line of stderr is the reason. Raises
    PipebenchError for any other exit code or for output that is no such document; DeadlineReached (after
    the whole process group was killed) when the time limit passes.
    """
    words = shlex.split(command)
    if not words:
        raise PipebenchError("cmd: names no program", "write cmd:./planner")
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise PipebenchError(f"cmd:{command}: {error.strerror or error}") from None
    left = None if context.deadline_s is None else max(0.0, context.deadline_s - time.monotonic())
    try:
        output, errors = process.communicate(encode("problem", problem), timeout=left)
    except subprocess.TimeoutExpired:
        raise DeadlineReached("the time limit was reached") from None
    finally:
        _kill_group(process)
    last = errors.decode(errors="replace").strip().splitlines()
    reason = last[-1][:200] if last else f"exit code {process.returncode}"
    if process.returncode == INFEASIBLE_EXIT:
        raise InfeasibleProblem(reason)
    if process.returncode == UNSUPPORTED_EXIT:
        raise UnsupportedProblem(reason)
    if process.returncode != 0:
        raise PipebenchError(f"cmd:{command} failed with exit code {process.returncode}: {reason}")
    return _read(output, f"output of cmd:{command}")


def _read(output: bytes, source: str) -> PlanResult:
    if len(output) > MAX_OUTPUT_BYTES:
        raise PipebenchError(f"{source}: {len(output)} bytes, at most {MAX_OUTPUT_BYTES} are read")
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
    process.wait()
