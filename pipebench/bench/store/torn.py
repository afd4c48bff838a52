"""The end of a file that a killed writer left: kept beside, then cut off."""

import os
from pathlib import Path


def cut_off(file: Path, size: int, torn: bytes) -> Path:
    """Cut the file down to its first `size` bytes; what follows, `torn`, is on the disk in the file returned."""
    kept = _keep(file.parent, torn)
    with open(file, "r+b") as opened:
        opened.truncate(size)
        os.fsync(opened.fileno())
    return kept


def sync_folder(folder: Path) -> None:
    """Names in the folder are on the disk when this returns."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _keep(folder: Path, torn: bytes) -> Path:
    number = 1
    while (kept := folder / f"torn-{number}.txt").exists():
        number += 1
    try:
        with open(kept, "xb") as file:
            file.write(torn)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise
    except BaseException:
        kept.unlink(missing_ok=True)
        raise
    sync_folder(folder)
    return kept
