"""An original made ready to run: the interpreter found, or the source compiled into a scratch folder."""

import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipebench.bench.originals.checkout import Checkout
from pipebench.bench.originals.child import ChildRun, own_environment, run_child
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.hooks.originals import Original

COMPILE_S = 600.0
COMPILER_FLAGS = ("-O3", "-w")
"""What the authors' own pages ask for; their warnings are theirs."""
STARTS = 5
"""Runs that only start, of which the median is taken."""


@dataclass(frozen=True, slots=True)
class ReadyOriginal:
    """words: the command before a case's arguments. start_s: CPU seconds of starting, before the input is read."""

    original: Original
    words: tuple[str, ...]
    scratch: Path
    environment: Mapping[str, str]
    start_s: float

    def run(self, arguments: Sequence[str], limit_s: float, given: Path | None) -> ChildRun:
        """One run, with a time limit. given: its standard input."""
        return run_child((*self.words, *arguments), self.scratch, self.environment, limit_s, given)


def commands(original: Original, checkout: Checkout, python: str, compiler: str) -> tuple[str, ...]:
    """What will run with the user's rights, one line each."""
    source = checkout.file(original.source)
    if original.language == "python":
        return (" ".join((python, *original.flags, str(source), "…")),)
    return (f"{' '.join((compiler, *COMPILER_FLAGS))} {source}, then the program that it makes",)


def make_ready(original: Original, checkout: Checkout, scratch: Path, python: str, compiler: str) -> ReadyOriginal:
    """Find the interpreter or compile, and time a start. Nothing is written but in `scratch`.

    Raises PipebenchError: no interpreter or compiler, packages that it lacks, a source that does not compile.
    """
    if original.language == "python":
        return _interpreted(original, checkout, scratch, python)
    return _compiled(original, checkout, scratch, compiler)


def _interpreted(original: Original, checkout: Checkout, scratch: Path, python: str) -> ReadyOriginal:
    found = _find(python, "an interpreter", "--python")
    folders = os.pathsep.join(str(checkout.file(name)) for name in original.path)
    environment = own_environment(scratch, {"PYTHONPATH": folders, "PYTHONDONTWRITEBYTECODE": "1"})
    words = (found, *original.flags, str(checkout.file(original.source)))
    ready = ReadyOriginal(original, words, scratch, environment, 0.0)
    if not original.start:
        return ready
    starts = [ready.run(original.start, COMPILE_S, None) for _ in range(STARTS)]
    failed = next((each for each in starts if each.code != 0), None)
    if failed is not None:
        raise PipebenchError(
            f"{original.source} does not start under {python!r}: {failed.error or f'exit status {failed.code}'}",
            f"it needs {original.needs}: make a virtual environment with these and name its python with --python",
            ExitCode.NOTHING_RAN,
        )
    start_s = sorted(each.cpu_s for each in starts)[len(starts) // 2]
    return ReadyOriginal(original, words, scratch, environment, start_s)


def _compiled(original: Original, checkout: Checkout, scratch: Path, compiler: str) -> ReadyOriginal:
    found = _find(compiler, "a C++ compiler", "--compiler")
    environment = own_environment(scratch, {})
    source = checkout.file(original.source)
    if original.main:
        whole = scratch / "whole.cpp"
        lines = ("#define main original_main", f'#include "{source.name}"', "#undef main", original.main)
        whole.write_text("\n".join(lines))
        given: tuple[str, ...] = (f"-I{source.parent}", str(whole))
    else:
        given = (str(source),)
    program = scratch / "program"
    made = run_child((found, *COMPILER_FLAGS, *given, "-o", str(program)), scratch, environment, COMPILE_S)
    if made.code != 0 or not program.is_file():
        raise PipebenchError(
            f"{original.source} does not compile with {compiler!r}: {made.error or f'exit status {made.code}'}",
            f"GCC 12 compiles commit {original.commit[:12]} of {original.repository}; --compiler names another",
            ExitCode.NOTHING_RAN,
        )
    return ReadyOriginal(original, (str(program),), scratch, environment, 0.0)


def _find(name: str, what: str, option: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PipebenchError(f"there is no {name!r}, {what}, on the PATH", f"name one with {option}")
    return os.path.abspath(found)


def default_python() -> str:
    """The interpreter that runs the suite."""
    return sys.executable


def answer_of(original: Original, output: str) -> float | None:
    """The number behind the last occurrence of the original's words; None where there is none."""
    _, found, rest = output.rpartition(original.answer)
    words = rest.split(None, 1)
    if not found or not words:
        return None
    try:
        value = float(words[0].rstrip(",;"))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
