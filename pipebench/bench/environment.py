"""What a row remembers of where it was made."""

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("pipebench", "numpy", "numba", "networkx", "PuLP", "highspy")


@cache
def environment() -> dict[str, str]:
    """Machine, CPU, Python, package versions and git revision; the load is added by `with_load`."""
    found = {
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": str(os.cpu_count()),
        "git": _git_revision(),
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def with_load(seed: int) -> dict[str, str]:
    """The environment with the load average and the seed of this moment."""
    return {**environment(), "load": f"{os.getloadavg()[0]:.2f}", "seed": str(seed)}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _git_revision() -> str:
    """The revision of the checkout that this code runs from; '' when it was installed from elsewhere."""
    root = Path(__file__).resolve().parents[2]
    return _git(root, "describe", "--always", "--dirty") if (root / ".git").exists() else ""


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
