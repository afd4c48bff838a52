"""Suite files made in a test."""

from pathlib import Path

from pipebench.bench.problems.workload import Workload
from pipebench.bench.suites.selection import Selection, select
from pipebench.hooks.manager import Host

HEAD = 'name = "mine"\nsummary = "made in a test"\n'
GRAPH = (
    "node1 -- A -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0\n"
    "node2 -- B -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=8.0, parameter_size=4.0\n"
    "\tnode1 -- node2\n"
)
"""A profile of two operators in PipeDream's format; its batch is not in it."""


def workload(**keys: object) -> str:
    """One table of a suite; values as TOML writes them, resnet50 on 8 devices where nothing is said."""
    said = {"profile": "resnet50", "cluster": "madpipe", "devices": 8, "memory": "12GB", **keys}
    return "[[workloads]]\n" + "".join(
        f"{key} = {_toml(value)}\n" for key, value in said.items() if value is not None
    )


def write(folder: Path, text: str, file: str = "mine.toml") -> str:
    """The path of a suite file with that text."""
    path = folder / file
    path.write_text(text)
    return str(path)


def selected(*suites: str, **asked: object) -> list[Workload]:
    """The workloads of suites, with what the user says besides."""
    return select(Host(), Selection(suites=suites, **asked))  # type: ignore[arg-type]


def _toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f"'{value}'" if isinstance(value, str) else str(value)
