"""Temporary files and folders, named after their process; the next one removes what a killed one left.

The name is not enough where machines or containers share a folder: who uses a file or folder also locks it.
"""

import contextlib
import fcntl
import os
import re
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipebench.system.removal import remove_folder

FILE = re.compile(r"\.pipebench-(\d+)-[0-9a-f]{8}\.tmp")
FOLDER = re.compile(r"pipebench-(\d+)-\w+")
_cleared: set[tuple[int, str]] = set()
"""Process and folder: what is killed later is cleared by the next process."""


def draft_beside(target: Path) -> Path:
    """A name in the folder of a file that nobody else has; what killed processes left there is removed.

    Also drafts of that file under the name that they had before, `.NAME.PROCESS.tmp`.
    """
    former = re.compile(rf"\.{re.escape(target.name)}\.(\d+)\.tmp")
    _clear(target.parent, (FILE, former))
    return target.with_name(f".pipebench-{os.getpid()}-{secrets.token_hex(4)}.tmp")


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """An empty folder among the temporary files, removed at the end; so is what killed processes left there."""
    _clear(Path(tempfile.gettempdir()), (FOLDER,))
    folder = Path(tempfile.mkdtemp(prefix=f"pipebench-{os.getpid()}-"))
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        hold(handle)
        yield folder
    finally:
        os.close(handle)
        remove_folder(folder)


def hold(handle: int) -> None:
    """Lock an open draft or folder, so that no other machine removes it; nothing where there are no locks."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _clear(folder: Path, patterns: tuple[re.Pattern[str], ...]) -> None:
    key = os.getpid(), f"{folder} {patterns[-1].pattern}"
    if key in _cleared:
        return
    _cleared.add(key)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            named = next(filter(None, (pattern.fullmatch(entry.name) for pattern in patterns)), None)
            if named and not _runs(int(named[1])) and entry.stat(follow_symlinks=False).st_uid == os.getuid():
                _remove(entry)


def _remove(entry: os.DirEntry[str]) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if entry.is_dir(follow_symlinks=False):
                remove_folder(entry.path)
            else:
                os.unlink(entry.path)
        finally:
            os.close(handle)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
