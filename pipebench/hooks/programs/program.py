"""A planner that is any program: cmd:./planner reads a problem document on stdin and writes a plan on stdout."""

import contextlib
import errno
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from pipebench.documents.document import decode, encode, kind_of
from pipebench.documents.naming import in_words
from pipebench.domain.errors import (
    InfeasibleProblem,
    InvalidValue,
    PipebenchError,
    PluginFailed,
    UnsupportedProblem,
)
from pipebench.domain.limits import MOST_OUTPUT_BYTES, MOST_REASON_BYTES, MOST_WRITTEN_BYTES
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, ProgramResult
from pipebench.hooks.context import Context, DeadlineReached
from pipebench.hooks.programs.program_call import program_environment, seconds_left
from pipebench.system.endings import exit_text

INFEASIBLE_EXIT, UNSUPPORTED_EXIT = 10, 11
OUTPUT_KINDS = ("result", "bare-plan", "plan")
"""Kinds of documents that a program may write."""
WRITE = "write a document of kind result to standard output"
SHOWN_LETTERS = 40
"""Of output that is no document."""
LONGEST_FIRST_LINE = 256
"""Bytes of a script in which the system looks for its interpreter."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command that is ready to run in any folder.

    name: the program as the user wrote it, for messages.
    words: the command; every path in it is absolute.
    """

    name: str
    words: tuple[str, ...]


def find_program(command: str) -> Program:
    """The program of a command that is typed in the current folder. Raises PipebenchError as `split_command`."""
    words = split_command(command)
    first = os.path.abspath(words[0]) if "/" in words[0] else words[0]
    return Program(words[0], (first, *map(_absolute, words[1:])))


def run_program(program: Program, problem: Problem, context: Context) -> PlanResult:
    """Run the program and read a document of kind `bare-plan`, `plan` or `result` from its output.

    Counters of a `result` are added to those of the context.
    Exit code 10 means infeasible, 11 unsupported; the last line of stderr is the reason.
    Raises PipebenchError for any other exit code and for output that is no such document.
    Raises DeadlineReached when the time limit passes, after the whole process group was killed.
    """
    with TemporaryFile() as given, TemporaryFile() as output, TemporaryFile() as errors:
        given.write(encode("problem", problem))
        given.seek(0)
        process = _start(program, given, output, errors, program_environment(problem, context))
        try:
            _wait(process, context)
        finally:
            _pass_on(errors)
        result = _result(program, process.returncode, output, errors)
    for name, amount in result.counters.items():
        context.count(name, amount)
    return PlanResult(**{name: getattr(result, name) for name in PlanResult.__struct_fields__})


def split_command(command: str) -> list[str]:
    """The words of a command, split as a shell does. The first word names an existing program.

    Raises PipebenchError for an empty command and for a program that is missing or not executable.
    """
    words = command_words(command)
    if not words or not words[0]:
        raise PipebenchError("cmd: names no program", "write cmd:./planner")
    if shutil.which(words[0]) is None:
        raise PipebenchError(f"cmd:{command}: {_why_not(words[0])}", _remedy(words[0]))
    return words


def command_words(command: str) -> list[str]:
    """The words of a command, whether or not there is such a program.

    A command that is wholly in quotes is what stands between them, unless a program has that name.
    Raises PipebenchError for quotes that do not match and for a NUL.
    """
    if "\0" in command:
        raise PipebenchError(f"cmd:{command!r}: a command cannot hold a NUL")
    words = _split(command)
    if len(words) == 1 and len(words[0].split()) > 1 and shutil.which(words[0]) is None:
        return _split(words[0])
    return words


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise PipebenchError(f"cmd:{command}: {error}", "close every quote") from None


def _absolute(word: str) -> str:
    """A word that names a file, or a path to anything that is there, as an absolute path; any other as it is."""
    try:
        is_path = os.path.exists(word) if "/" in word else os.path.isfile(word)
    except ValueError:
        return word
    return os.path.abspath(word) if is_path else word


def _start(
    program: Program, given: IO[bytes], output: IO[bytes], errors: IO[bytes], environment: dict[str, str]
) -> "subprocess.Popen[bytes]":
    try:
        with _files_limited():
            return subprocess.Popen(
                program.words, stdin=given, stdout=output, stderr=errors, env=environment, start_new_session=True
            )
    except OSError as error:
        raise _start_error(program, error) from None


@contextlib.contextmanager
def _files_limited() -> Iterator[None]:
    """What is started inside ends when it writes a file of more than `_most_written_bytes`.

    This process is limited for that moment, because a child inherits the limit and the cage lets no process limit
    another. It writes no file meanwhile.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_most_written_bytes(), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _most_written_bytes() -> int:
    """The suite's limit, or the lower one of this process."""
    limits = [limit for limit in resource.getrlimit(resource.RLIMIT_FSIZE) if limit != resource.RLIM_INFINITY]
    return min([MOST_WRITTEN_BYTES, *limits])


def _start_error(program: Program, error: OSError) -> PipebenchError:
    """Why the system does not run a program that is there."""
    where = f"cmd:{program.name}"
    if error.errno == errno.ENOEXEC:
        what = "it is neither a program of this machine nor a script that names its interpreter"
        return PluginFailed(f"{where}: {what}", "put #!/bin/sh, or what else runs it, in its first line")
    interpreter = _interpreter(program.words[0])
    if interpreter and error.errno == errno.ENOENT:
        what = f"its first line names an interpreter that is not there: {interpreter!r}"
        return PluginFailed(f"{where}: {what}", "name one that is there behind #!")
    return PluginFailed(f"{where}: {error.strerror or error}")


def _interpreter(program: str) -> str:
    """What the first line of a script names behind #!, a carriage return included; empty for any other file."""
    try:
        with open(shutil.which(program) or program, "rb") as file:
            mark, _, named = file.read(LONGEST_FIRST_LINE).partition(b"\n")[0].partition(b"#!")
    except OSError:
        return ""
    words = [] if mark else named.decode(errors="replace").strip(" \t").split(" ")
    return words[0].split("\t")[0] if words else ""


def _why_not(program: str) -> str:
    if "/" not in program:
        return f"no program {program!r} on the PATH"
    path = Path(program)
    if os.path.isdir(path):
        return f"{program!r} is a directory, not a program"
    return f"{program!r} is not executable" if os.path.exists(path) else f"there is no program {program!r}"


def _remedy(program: str) -> str:
    """The remedy where a file of that name exists in this folder, or lacks the right to be run."""
    if program.endswith("]"):
        return "write cmd:./planner[option=value,…]"
    if not os.path.isfile(program):
        return "write cmd:./planner, or the name of a program on the PATH"
    return f"write cmd:./{program}" if "/" not in program else f"chmod +x {program}"


def _wait(process: "subprocess.Popen[bytes]", context: Context) -> None:
    """Wait until the process itself exits. Processes that it started are killed with it and never waited for.

    The streams are files, because a child that is left behind would hold a pipe open. A timer ends the wait,
    because wait(timeout) polls every 50 ms and would lengthen the search time.
    """
    left = seconds_left(context)
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
            timer.join()
        _kill_group(process)
        process.wait()
    if late.is_set():
        raise DeadlineReached("the time limit was reached")


def _pass_on(errors: IO[bytes]) -> None:
    """The end of what the program wrote to stderr goes to that of this process, as a function's would."""
    sys.stderr.write(_tail(errors).decode(errors="replace"))
    sys.stderr.flush()


def _result(program: Program, code: int, output: IO[bytes], errors: IO[bytes]) -> ProgramResult:
    last = _tail(errors).decode(errors="replace").strip().splitlines()
    reason = last[-1][:200] if last else "it says nothing on standard error"
    if code == INFEASIBLE_EXIT:
        raise InfeasibleProblem(reason)
    if code == UNSUPPORTED_EXIT:
        raise UnsupportedProblem(reason)
    size, limit = output.seek(0, os.SEEK_END), _most_written_bytes()
    if code == -signal.SIGXFSZ or (code != 0 and size >= limit):
        raise PluginFailed(f"cmd:{program.name} wrote a file of more than {limit} bytes", "write less")
    if code != 0:
        failed = PluginFailed if code < 0 else PipebenchError
        raise failed(f"cmd:{program.name} {exit_text(code)}: {reason}")
    source = f"output of cmd:{program.name}"
    if size > MOST_OUTPUT_BYTES:
        raise PluginFailed(f"{source}: {size / 1e6:.1f} MB, at most {MOST_OUTPUT_BYTES / 1e6:.1f} MB are read")
    output.seek(0)
    try:
        return _read(output.read(size), source)
    except InvalidValue:
        raise
    except PipebenchError as error:
        raise PluginFailed(error.message, error.hint) from None


def _tail(stream: IO[bytes]) -> bytes:
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - MOST_REASON_BYTES))
    return stream.read(MOST_REASON_BYTES)


def _read(output: bytes, source: str) -> ProgramResult:
    if not output.strip():
        raise PipebenchError(f"{source}: it is empty", WRITE)
    try:
        kind = kind_of(output, source)
    except PipebenchError as error:
        begins = output[: 4 * SHOWN_LETTERS].decode(errors="replace").strip()[:SHOWN_LETTERS]
        raise PipebenchError(f"{error.message}; it begins with {begins!r}", error.hint or WRITE) from None
    if kind not in OUTPUT_KINDS:
        raise PipebenchError(
            f"{source}: holds {in_words(kind)}, not a plan", f"write one of {', '.join(OUTPUT_KINDS)}"
        )
    value = decode(output, kind, source)
    if isinstance(value, ProgramResult):
        return value
    if isinstance(value, Plan):
        return ProgramResult(plan=value)
    return ProgramResult(plan=value.plan, schedule=value.schedule)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
