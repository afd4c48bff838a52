"""The source of a component: its files, and what they import and mention."""

import os
import shutil
from functools import cache
from pathlib import Path

import pipebench
from pipebench.bench.store.code_files import CodeFile, code_file, files_below, hash_of
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.programs.program import split_command

HOST_PACKAGES = ("domain", "costs", "check", "bounds", "algorithms", "simulation", "hooks", "bench")
"""What searches, checks and scores."""


def program_files(command: str) -> list[CodeFile]:
    """The program of a command, and those of its arguments that are files (as of `python3 planner.py`).

    Raises PipebenchError when the command cannot be split or its program is not there.
    """
    words = split_command(command)
    paths = [shutil.which(words[0]) or words[0], *(word for word in words[1:] if _is_file(word))]
    return [code_file(Path(path), str(number)) for number, path in enumerate(paths)]


@cache
def host_source() -> str:
    """Hash of the files of this pipebench that affect a result, comments included; computed once a process.

    It tells which code a row came from and is in no key.
    Raises PipebenchError when pipebench is not installed as files.
    """
    root = Path(pipebench.__file__).parent
    files = [file for name in HOST_PACKAGES for file in files_below(str(root / name), f"{name}/")]
    if not files:
        raise PipebenchError("the source of pipebench cannot be found", "install it as files")
    return hash_of(files)


def _is_file(word: str) -> bool:
    return os.path.isfile(word)
