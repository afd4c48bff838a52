"""Trust: what a name may run, by where it was read.

A name that the user types may be a program (`cmd:`), a Python file or an import path. A name out of a file (a
stored row, a plan, a profile, a suite) may only be that of an installed component, unless the user trusts the
file.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench.hooks.syntax import Reference

OPTION = "--trust"
"""What the user types to run what a file names."""
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
MOST_SCRIPT_BYTES = 2**24
"""Of a Python file whose hash is shown."""


class UntrustedName(PipebenchError):
    """A file names code that is not installed, and the user neither typed the name nor trusts the file."""

    def __init__(self, code: Iterable[str], file: str, instead: str = "type the name yourself") -> None:
        self.code, self.instead = tuple(code), instead
        super().__init__(
            f"{file} would run here: {'; '.join(self.code)}",
            f"a file may name installed components only: look at it, then add {OPTION} to run it, or {instead}",
        )


def _silent(line: str) -> None:
    del line


class Trust:
    """The user's word on the names in files.

    given: whether the user trusts the files of this command. tell: gets a line for each thing that will run, once,
    before it runs.
    """

    def __init__(self, given: bool = False, tell: Callable[[str], None] = _silent) -> None:
        self.given = given
        self._tell = tell
        self._told: set[str] = set()

    def require(self, references: Iterable[Reference], file: str) -> None:
        """Tell what the references out of a file would run. Raises UntrustedName where the file is not trusted."""
        code = list(dict.fromkeys(each for reference in references for each in code_of(reference)))
        if code and not self.given:
            raise UntrustedName(code, file)
        self._announce(code, file)

    def models(self, names: Iterable[str], file: str) -> frozenset[str]:
        """Those of the models out of a file that a plugin may import, which is none where it is not trusted."""
        if not self.given:
            return frozenset()
        known = tuple(dict.fromkeys(filter(None, names)))
        self._announce([f"the model {name}, imported and called" for name in known], file)
        return frozenset(known)

    def _announce(self, code: Iterable[str], file: str) -> None:
        for each in code:
            line = f"trusted: {file} runs {each}"
            if line not in self._told:
                self._told.add(line)
                self._tell(line)


def code_of(reference: Reference) -> Iterator[str]:
    """In words what a component runs that is not installed, its options included; nothing for a plain name."""
    yield from _code(reference.name)
    for value in reference.options.values():
        yield from _code(value)


def _code(text: str) -> Iterator[str]:
    plain = Reference(text.strip())
    if plain.is_program:
        yield f"the program {plain.name.removeprefix('cmd:').strip()}"
    elif plain.is_script:
        yield f"the Python file {_described(Path(plain.name))}"
    elif IMPORT_PATH.fullmatch(plain.name) or ".py:" in plain.name:
        yield f"{plain.name}, imported and called"


def _described(file: Path) -> str:
    """The file with the hash of its text, so that the user knows which text runs."""
    try:
        with open(file, "rb") as opened:
            text = opened.read(MOST_SCRIPT_BYTES)
    except (OSError, ValueError):
        return f"{file} (which cannot be read)"
    return f"{file.absolute()} ({len(text)} bytes, SHA-256 {hashlib.sha256(text).hexdigest()[:16]})"
