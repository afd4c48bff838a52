"""Both revisions of a distribution: checked out, each installed in a folder of its own."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pipebench.documents.decoding import bounded_toml
from pipebench.domain.errors import PipebenchError
from pipebench.formats.files import read_file


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


def describe_revision(top: Path) -> str:
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


PIP_S = 600.0


@dataclass(frozen=True, slots=True)
class Side:
    """name: as the user knows it. site: the folder it is installed in, before everything else on the import path.
    cache: for compiled kernels of a pipebench of its own.
    """

    name: str
    site: Path
    cache: Path

    def environment(self) -> dict[str, str]:
        """Of its processes. Everything that is not in its site comes from the environment that this runs in."""
        path = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        own = {"PYTHONPATH": os.pathsep.join([str(self.site), *path]), "PYTHONHASHSEED": "0"}
        if self.file("__init__.py") is not None:
            own["NUMBA_CACHE_DIR"] = str(self.cache)
        return os.environ | own

    def file(self, name: str) -> Path | None:
        """A file of the package pipebench on this side, None where it has no such package of its own."""
        found = self.site / "pipebench" / name
        return found if found.exists() else None


def project_name(source: Path) -> str:
    """The distribution that a source tree makes. Raises PipebenchError."""
    project = _toml(source).get("project")
    name = project.get("name") if isinstance(project, dict) else None
    if not isinstance(name, str):
        raise PipebenchError(
            f"{str(source / 'pyproject.toml')!r} names no project", "run this in the repository of a planner"
        )
    return name


def install(what: str, target: Path, source: Path | None = None) -> None:
    """Install a source tree, or a requirement such as mine==1.0, without dependencies. Raises PipebenchError."""
    words = [sys.executable, "-P", "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    if source is not None and _can_build(source):
        words.append("--no-build-isolation")
    try:
        done = subprocess.run(
            [*words, "--target", str(target), what],
            capture_output=True,
            text=True,
            timeout=PIP_S,
            check=False,
            cwd=target.parent,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipebenchError(f"pip install {what}: {error}") from None
    if done.returncode != 0:
        raise PipebenchError(f"pip install {what}: {_reason(done.stderr)}")


def _reason(printed: str) -> str:
    """The line of pip's output that names the exception of the build, else the last one that names an error."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    exceptions = [line for line in lines if line.partition(":")[0].endswith(("Error", "Exception"))]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (exceptions or errors or lines or ["no reason given"])[-1]


def _can_build(source: Path) -> bool:
    """Whether the build backend is installed here: then nothing has to be fetched for it."""
    system = _toml(source).get("build-system")
    backend = system.get("build-backend") if isinstance(system, dict) else None
    module = backend.partition(":")[0].partition(".")[0] if isinstance(backend, str) else "setuptools"
    return importlib.util.find_spec(module) is not None


def _toml(source: Path) -> dict[str, object]:
    file = source / "pyproject.toml"
    try:
        return tomllib.loads(bounded_toml(read_file(file), str(file)).decode())
    except (ValueError, RecursionError) as error:
        raise PipebenchError(f"{str(file)!r}: not valid TOML: {error}") from None


VERSION = re.compile(r"v?\d+(\.\d+)*([abrc.+-]\w+)*")


@dataclass(frozen=True, slots=True)
class Sides:
    """before: what was named; after: what is here. distribution: whose two states they are."""

    distribution: str
    before: Side
    after: Side


def install_sides(named: str, here: Path, scratch: Path) -> Sides:
    """Install both below a scratch folder. named: a git revision of the repository around `here`, else a version.

    Raises PipebenchError: neither a revision nor a version, no project here, git or pip failed.
    """
    top = repository(here)
    if top is None or not (top / "pyproject.toml").exists():
        raise PipebenchError(
            f"{str(here)!r} is not in a git repository with a pyproject.toml",
            "run this in the repository of a planner",
        )
    distribution = project_name(top)
    commit = commit_of(top, named)
    if commit is None and not VERSION.fullmatch(named):
        raise PipebenchError(
            f"{named!r} is neither a revision of {str(top)!r} nor a version",
            "a shallow clone has few revisions: fetch more (git fetch --unshallow)",
        )
    if commit is None:
        before = _side(f"{distribution} {named}", scratch / "before")
        install(f"{distribution}=={named}", before.site)
    else:
        before = _side(f"{named} ({commit[:10]})", scratch / "before")
        source = scratch / "before-source"
        check_out(top, commit, source)
        install(str(source), before.site, source)
    after = _side(f"the working tree ({describe_revision(top)})", scratch / "after")
    source = scratch / "after-source"
    copy_working_tree(top, source)
    install(str(source), after.site, source)
    return Sides(distribution, before, after)


def _side(name: str, folder: Path) -> Side:
    folder.mkdir(parents=True)
    return Side(name, folder / "site", folder / "kernels")
