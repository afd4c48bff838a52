"""Files as a child sees them: all of them are read-only, those of its own folders apart.

Landlock forbids writing; it does not forbid to set times, modes and attributes of files, and a search could be
remembered in these as well. A process with a mount namespace of its own can mount everything read-only for itself.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from typing import Any

# linux/mount.h, linux/fcntl.h; the system call has this number on every architecture
MOUNT_SETATTR = 442
READ_ONLY, BIND = 1, 4096
WHOLE_TREE = 0x8000
FROM_CURRENT_FOLDER = -100


def mount_read_only(writable: Iterable[str]) -> bool:
    """Make all mounts of this process read-only but those folders. It needs a mount namespace of its own.

    Returns whether the kernel permits it (5.12 and later); if not, nothing has changed that a user would see.
    """
    libc: Any = ctypes.CDLL(None, use_errno=True)
    folders = [os.path.realpath(folder) for folder in writable]
    for folder in folders:
        if libc.mount(os.fsencode(folder), os.fsencode(folder), None, BIND, None) != 0:
            return False
    if not _set(libc, "/", set_flags=READ_ONLY, depth=WHOLE_TREE):
        return False
    cleared = [_set(libc, folder, clear_flags=READ_ONLY) for folder in folders]
    return all(cleared)


def hide(paths: Iterable[str]) -> None:
    """Let this process find these folders and files empty, those that are there.

    It needs a mount namespace of its own.
    """
    libc: Any = ctypes.CDLL(None, use_errno=True)
    for path in paths:
        if os.path.isdir(path):
            libc.mount(b"tmpfs", os.fsencode(path), b"tmpfs", READ_ONLY, b"size=4k")
        elif os.path.isfile(path):
            libc.mount(os.devnull.encode(), os.fsencode(path), None, BIND, None)


def _set(libc: Any, path: str, set_flags: int = 0, clear_flags: int = 0, depth: int = 0) -> bool:
    attributes = struct.pack("=QQQQ", set_flags, clear_flags, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    return bool(libc.syscall(MOUNT_SETATTR, FROM_CURRENT_FOLDER, os.fsencode(path), depth, attributes, size) == 0)
