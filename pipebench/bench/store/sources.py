"""The source of a component: its files, their hash, and what else its result depends on."""

import shutil
from collections import deque
from functools import cache
from pathlib import Path

import pipebench
from pipebench.bench.store.code_files import CodeFile, code_file, files_below, hash_of
from pipebench.bench.store.contents import mentions
from pipebench.domain.errors import PipebenchError
from pipebench.hooks.program import split_command

HOST_PACKAGES = ("domain", "costs", "check", "bounds", "algorithms", "simulation", "hooks", "bench")
"""What searches, checks and scores."""


def script_files(path: str) -> list[CodeFile]:
    """A planner's file, and the modules beside it that it imports, directly or through each other.

    Imports are read off the source, wherever in it; what is imported by a computed name is not seen. Raises
    PipebenchError when the file cannot be read.
    """
    script = Path(path)
    found: dict[str, CodeFile] = {}
    waiting = deque([code_file(script, "")])  # without its name: a copy elsewhere is the same planner
    while waiting:
        file = waiting.popleft()
        if file.path in found:
            continue
        found[file.path] = file
        for name in sorted(mentions([file]).imports):
            waiting.extend(_beside(script.parent, name))
    return sorted(found.values(), key=lambda file: file.name)


def program_files(command: str) -> list[CodeFile]:
    """The program of a command, and those of its arguments that are files (as of `python3 planner.py`).

    Raises PipebenchError when the command cannot be split or its program is not there.
    """
    words = split_command(command)
    paths = [shutil.which(words[0]) or words[0], *(word for word in words[1:] if _is_file(word))]
    return [code_file(Path(path), str(number)) for number, path in enumerate(paths)]


@cache
def host_source() -> str:
    """Hash of the code of this pipebench that has a part in a result; once a process.

    Raises PipebenchError when it is not installed as files.
    """
    root = Path(pipebench.__file__).parent
    files = [file for name in HOST_PACKAGES for file in files_below(str(root / name), f"{name}/")]
    if not files:
        raise PipebenchError("the source of pipebench cannot be found", "install it as files")
    return hash_of(files)


def _beside(folder: Path, name: str) -> list[CodeFile]:
    if _is_file(str(folder / f"{name}.py")):
        return [code_file(folder / f"{name}.py", f"{name}.py")]
    package = folder / name
    return files_below(str(package), f"{name}/") if package.is_dir() else []


def _is_file(word: str) -> bool:
    return "\0" not in word and Path(word).is_file()
