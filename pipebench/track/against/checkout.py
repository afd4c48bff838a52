"""The source of a revision, or of the working tree, in a folder of its own; the repository stays as it is."""

import shutil
import subprocess
from pathlib import Path

from pipebench.domain.errors import PipebenchError


def repository(start: Path) -> Path | None:
    """The top folder of the git repository around a folder, None where there is none."""
    done = _git(start, "rev-parse", "--show-toplevel")
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def commit_of(top: Path, revision: str) -> str | None:
    """The commit that a revision names, None where it names none."""
    if revision.startswith("-"):
        return None
    done = _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    return done.stdout.strip() if done.returncode == 0 else None


def described(top: Path) -> str:
    """The revision of the working tree, as git describes it; empty where there is no commit yet."""
    done = _git(top, "describe", "--always", "--dirty", "--tags")
    return done.stdout.strip() if done.returncode == 0 else ""


def check_out(top: Path, commit: str, target: Path) -> None:
    """A commit with its repository (some builds ask git for their version). Raises PipebenchError."""
    _must(top.parent, "clone", "--quiet", "--shared", "--no-checkout", str(top), str(target))
    _must(target, "checkout", "--quiet", "--detach", commit)


def copy_working_tree(top: Path, target: Path) -> None:
    """The files as they are now: those that git tracks or would, changed or not. Raises PipebenchError."""
    check_out(top, "HEAD", target)
    listed = _must(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    names = {name for name in listed if name and (top / name).is_file()}
    for name in _must(target, "ls-files", "-z").split("\0"):
        if name and name not in names:
            (target / name).unlink(missing_ok=True)
    for name in sorted(names):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).unlink(missing_ok=True)
        shutil.copy2(top / name, target / name, follow_symlinks=False)


def _must(folder: Path, *words: str) -> str:
    done = _git(folder, *words)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise PipebenchError(f"git {words[0]}: {last}")
    return done.stdout


def _git(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=False)
    except OSError as error:
        raise PipebenchError(f"git cannot be run: {(error.strerror or str(error)).lower()}") from None
