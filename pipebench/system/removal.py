"""Remove a folder that others have filled: however deep it is, and whatever modes they gave."""

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(folder: str | Path) -> None:
    """Remove it and all that is in it; what the system does not permit to remove stays.

    What is nested is moved up before it is removed, so that no depth is too much for Python or for the system.
    """
    with suppress(OSError):
        if not os.path.islink(folder):
            os.chmod(folder, stat.S_IRWXU)
        top = os.open(folder, _FOLDER)
        try:
            waiting = os.listdir(top)
            while waiting:
                waiting += _take_apart(top, waiting.pop())
        finally:
            os.close(top)
        os.rmdir(folder)


def _take_apart(top: int, name: str) -> list[str]:
    """Remove one entry of the folder `top`; the names that the folders in it have got there."""
    moved: list[str] = []
    with suppress(OSError):
        if _removes_file(top, name):
            return moved
        inside = os.open(name, _FOLDER, dir_fd=top)
        try:
            for each in os.listdir(inside):
                with suppress(OSError):
                    if not _removes_file(inside, each):
                        new = secrets.token_hex(8)
                        os.rename(each, new, src_dir_fd=inside, dst_dir_fd=top)
                        moved.append(new)
        finally:
            os.close(inside)
        os.rmdir(name, dir_fd=top)
    return moved


def _removes_file(parent: int, name: str) -> bool:
    """Remove what is no folder. A folder may be read and moved from now on."""
    if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        os.chmod(name, stat.S_IRWXU, dir_fd=parent)
        return False
    os.unlink(name, dir_fd=parent)
    return True
