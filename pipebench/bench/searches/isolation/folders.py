"""The folders of children: one of their own that is emptied for each, and compiled kernels that they read."""

import contextlib
import os
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from pipebench.hooks.discovery import SUITE
from pipebench.system.kernel_folder import PLUGINS, kernel_folder
from pipebench.system.removal import remove_folder
from pipebench.system.scratch import scratch_folder

YEARS_S = 3e8


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
        self._noted: dict[str, _State] = {}

    def renew(self, owner: str) -> None:
        """Empty folders, and the kernels that were kept of the suite and for plugins of this distribution.

        A folder of kernels is made again where the last child has changed it since `note`: 150 links take 40 ms.
        """
        _make_empty(self.own)
        links = self._links(owner)
        present = _states(self.kernels, self._noted)
        if not present or present[""] != self._noted.get(""):
            _make_empty(self.kernels)
            present = {}
        same = {name for name, state in present.items() if name and self._is_same(name, state, links)}
        for name in present.keys() - same - {""}:
            _remove(self.kernels / name)
        for name in links.keys() - same:
            (self.kernels / name).mkdir()
            for file, target in links[name].items():
                os.symlink(target, self.kernels / name / file)
                _hide_reading(self.kernels / name / file)
            _hide_reading(self.kernels / name)
        if present.keys() != links.keys() | {""} or same != links.keys():
            _hide_reading(self.kernels)
            self.note()

    def _is_same(self, name: str, state: "_State", links: dict[str, dict[str, str]]) -> bool:
        """Whether a folder of kernels is as the last child found it, and as the next one shall find it."""
        return state == self._noted.get(name) and state.links == links.get(name)

    def note(self) -> None:
        """From here on the child knows its problem: whatever it changes, no other child shall see.

        Where no folder has changed since, the links in it are taken to be as they were. One that has changed
        before the child knew its problem is then made again, which does no harm.
        """
        self._noted = _states(self.kernels, self._noted, roughly=True)

    def _links(self, owner: str) -> dict[str, dict[str, str]]:
        """By folder of kernels: files and where they are kept. Of each folder one side's whole, the owner's first,
        for an index fits only the files that it was written with.
        """
        found: dict[str, dict[str, str]] = {}
        for kept in (self._kept(owner), self._kept(SUITE)):
            for folder in kept.iterdir() if kept.is_dir() else ():
                if folder.is_dir() and folder.name != PLUGINS and folder.name not in found:
                    found[folder.name] = {file.name: file.path for file in os.scandir(folder)}
        return found

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


@dataclass(frozen=True, slots=True)
class _State:
    """A folder: what the kernel changes with every change of it or of a file in it, and the links in it.

    Nobody sets the time of the last change (`st_ctime`), so that it shows what times and attributes could hide.
    """

    changed: tuple[tuple[int, int, int], ...]
    links: dict[str, str]


def _states(folder: Path, before: dict[str, _State], roughly: bool = False) -> dict[str, _State]:
    """Of a folder (by the name "") and of each folder in it; nothing where it is not there.

    before: known ones. roughly: those that have not changed themselves stay as they are known.
    """
    try:
        found = {"": _State((_changed(os.lstat(folder)),), {})}
        for inside in os.scandir(folder):
            known = before.get(inside.name)
            if not roughly or known is None or _changed(inside.stat(follow_symlinks=False)) != known.changed[0]:
                known = _state(inside, known)
            found[inside.name] = known
    except OSError:
        return {}
    return found


def _state(folder: "os.DirEntry[str]", before: _State | None) -> _State:
    entries = os.scandir(folder) if folder.is_dir(follow_symlinks=False) else ()
    inside = sorted(entries, key=lambda entry: entry.name)
    changed = tuple(_changed(each.stat(follow_symlinks=False)) for each in (folder, *inside))
    if before is not None and changed == before.changed:
        return before
    return _State(changed, {each.name: os.readlink(each) if each.is_symlink() else "" for each in inside})


def _changed(stat: os.stat_result) -> tuple[int, int, int]:
    return stat.st_ino, stat.st_ctime_ns, stat.st_atime_ns


def _hide_reading(path: Path) -> None:
    """Say that it was read in years to come: then the kernel does not note when a child reads it (`relatime`)."""
    now_s = time.time()
    os.utime(path, (now_s + YEARS_S, now_s), follow_symlinks=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)


def _make_empty(folder: Path) -> None:
    remove_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)


def _points_to(link: str, target: Path) -> bool:
    """Whether this is a link that `renew` has made; a child makes links as well."""
    return os.path.islink(link) and os.readlink(link) == str(target)


def _replace(source: str, target: Path) -> None:
    """Move a file over another one in one step, so that nobody reads half of it."""
    half = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    shutil.copyfile(source, half)
    os.replace(half, target)
