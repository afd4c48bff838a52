"""The versions that a night depends on, as pip takes them (`-c FILE`): solvers and numerical packages."""

import re

from packaging.utils import canonicalize_name

from pipebench.bench.machine.environment import PACKAGES, environment

FILE = "constraints.txt"
HEAD = "# The versions of a night: change them on purpose, as results and times depend on them.\n"
PIN = re.compile(
    r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*={2,3}\s*[\w.!+-]+(?=[\s;#]|$)", re.MULTILINE
)


def installed_versions() -> str:
    """A file of constraints with the versions that are installed here."""
    found = environment()
    return HEAD + "".join(f"{name}=={found[name]}\n" for name in PACKAGES if name in found)


def unpinned(text: str) -> list[str]:
    """The packages of a night, pipebench apart, whose version a file of constraints leaves open."""
    pinned = {canonicalize_name(name) for name in PIN.findall(text)}
    return [name for name in PACKAGES if name != "pipebench" and canonicalize_name(name) not in pinned]
