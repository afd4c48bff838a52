"""A user's checkout of an original: what is there, at which commit, and whether it stays as it is."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench.hooks.originals import Original

MOST_FILES, MOST_INPUTS = 100_000, 200
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder, its whole path, and the commit that its `.git` names; empty where it names none."""

    folder: Path
    commit: str

    def file(self, name: str) -> Path:
        """The path of one of its files."""
        return self.folder / name

    def inputs(self, pattern: str) -> tuple[str, ...]:
        """Files that match, as paths in the checkout, sorted; none that lies outside behind a link.

        Raises PipebenchError for more than MOST_INPUTS.
        """
        found = sorted(
            path.relative_to(self.folder).as_posix()
            for path in self.folder.glob(pattern)
            if path.is_file() and path.resolve().is_relative_to(self.folder)
        )
        if len(found) > MOST_INPUTS:
            raise PipebenchError(
                f"{str(self.folder)!r} has {len(found)} files {pattern}, more than {MOST_INPUTS}",
                "give a checkout of the original, with nothing added",
            )
        return tuple(found)

    def state(self) -> dict[str, tuple[int, int]]:
        """Size and time of change of each file: equal before and after where nothing was written."""
        found: dict[str, tuple[int, int]] = {}
        for top, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(top, name)
                about = os.lstat(path)
                found[path] = about.st_size, about.st_mtime_ns
            if len(found) > MOST_FILES:
                raise PipebenchError(
                    f"{str(self.folder)!r} has more than {MOST_FILES} files",
                    "give a checkout of the original alone",
                )
        return found


def open_checkout(folder: str, original: Original) -> Checkout:
    """The checkout in a folder. Raises PipebenchError where it is no folder or lacks a file of the original."""
    path = Path(folder)
    clone = f"git clone https://github.com/{original.repository}"
    if not path.is_dir():
        raise PipebenchError(f"{folder!r} is no folder", f"{clone} and name the folder that it makes")
    whole = path.resolve()
    missing = [name for name in (original.source, *original.files) if not (whole / name).is_file()]
    if missing:
        raise PipebenchError(
            f"{folder!r} is no checkout of {original.repository}: it lacks {', '.join(missing)}",
            f"{clone}; commit {original.commit[:12]} has all of it",
        )
    return Checkout(whole, _commit(whole / ".git"))


def _commit(git: Path) -> str:
    """The commit that is checked out, read off git's files; empty where they do not say."""
    head = _text(git / "HEAD")
    name = head.removeprefix("ref: ") if head.startswith("ref: refs/") else ""
    if name and ".." not in name:
        listed = (line.split() for line in _text(git / "packed-refs").splitlines())
        packed = next((words[0] for words in listed if len(words) == 2 and words[1] == name), "")
        head = _text(git / name) or packed
    return head if _COMMIT.fullmatch(head) else ""


def _text(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(2**20).decode("utf-8", errors="replace").strip()
    except OSError:
        return ""
