"""The folders of children: one of their own that is emptied for each, and compiled kernels that they read."""

import contextlib
import os
import re
import shutil
from pathlib import Path

from pipebench.hooks.discovery import SUITE
from pipebench.system.kernel_folder import PLUGINS, kernel_folder
from pipebench.system.scratch import scratch_folder


class ChildFolders:
    """A folder for one child at a time; all paths stay the same from child to child.

    own: where a child works: home, temporary files, caches. kernels: where numba looks for compiled kernels; those
    that were kept are links there, so that a child reads them, and what it compiles itself is its own.
    """

    def __init__(self) -> None:
        self._lease = contextlib.ExitStack()
        self._base = self._lease.enter_context(scratch_folder())
        self.own = self._base / "own"
        self.kernels = self._base / "kernels"
        self._spare = self._base / "kept"

    def renew(self, owner: str) -> None:
        """Empty folders, and the kernels that were kept of the suite and for plugins of this distribution.

        Of each folder of kernels one side's whole, for an index fits only the files that it was written with.
        """
        for folder in (self.own, self.kernels):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        for kept in (self._kept(owner), self._kept(SUITE)):
            for folder in kept.iterdir() if kept.is_dir() else ():
                if folder.is_dir() and folder.name != PLUGINS and not (self.kernels / folder.name).exists():
                    (self.kernels / folder.name).mkdir()
                    for file in os.scandir(folder):
                        os.symlink(file.path, self.kernels / folder.name / file.name)

    def keep_kernels(self, owner: str) -> None:
        """Keep what the last child compiled, and what lay beside it. Only for a child that has seen no problem."""
        kept, suite = self._kept(owner), self._kept(SUITE)
        for folder in self.kernels.iterdir():
            files = list(os.scandir(folder)) if folder.is_dir() and not folder.is_symlink() else []
            files = [file for file in files if file.name.endswith((".nbi", ".nbc"))]
            if not any(file.is_file(follow_symlinks=False) for file in files):
                continue
            for file in files:
                if file.is_file(follow_symlinks=False) or (
                    owner != SUITE and _points_to(file.path, suite / folder.name / file.name)
                ):
                    with contextlib.suppress(OSError):
                        (kept / folder.name).mkdir(parents=True, exist_ok=True)
                        _replace(file.path, kept / folder.name / file.name)

    def remove(self) -> None:
        """Remove everything but the kernels that are kept in the user's cache."""
        self._lease.close()

    def _kept(self, owner: str) -> Path:
        """Kernels of one distribution: what a plugin compiles is read by plugins of its distribution only."""
        name = re.sub(r"[^A-Za-z0-9._-]", "_", owner) or "unknown"
        return kernel_folder(name) or self._spare / name


def _points_to(link: str, target: Path) -> bool:
    """Whether this is a link that `renew` has made; a child makes links as well."""
    return os.path.islink(link) and os.readlink(link) == str(target)


def _replace(source: str, target: Path) -> None:
    """Move a file over another one in one step, so that nobody reads half of it."""
    half = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    shutil.copyfile(source, half)
    os.replace(half, target)
