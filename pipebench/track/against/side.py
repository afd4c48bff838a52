"""One side of a comparison of revisions: where its code is installed and how it is run."""

import importlib.util
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench.formats.files import read_file

PIP_S = 600.0


@dataclass(frozen=True, slots=True)
class Side:
    """name: as the user knows it. site: the folder it is installed in, before everything else on the import path;
    None: what is installed here anyway. cache: for compiled kernels of a pipebench of its own.
    """

    name: str
    site: Path | None
    cache: Path

    def environment(self) -> dict[str, str]:
        """Of its processes. Everything that is not in its site comes from the environment that this runs in."""
        path = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        if self.site is not None:
            path.insert(0, str(self.site))
        own = {"PYTHONPATH": os.pathsep.join(path), "PYTHONHASHSEED": "0"}
        if self.file("__init__.py") is not None:
            own["NUMBA_CACHE_DIR"] = str(self.cache)
        return os.environ | own

    def file(self, name: str) -> Path | None:
        """A file of the package pipebench on this side, None where it has no such package of its own."""
        found = self.site / "pipebench" / name if self.site is not None else None
        return found if found is not None and found.exists() else None


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
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
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
        return tomllib.loads(read_file(file).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipebenchError(f"{str(file)!r}: not valid TOML: {error}") from None
