"""Fake installed distributions on disk, as pip would leave them."""

from pathlib import Path

GOOD = """
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Planner

PIPEBENCH_API = 1

@hookimpl
def pipebench_planners():
    return [Planner(name="{name}", summary="a planner of {module}", load="{module}:plan")]

def plan(problem, context):
    raise NotImplementedError
"""


def install(folder: Path, distribution: str, source: str) -> None:
    """Write a distribution of one module with one entry point into a folder for sys.path."""
    module = distribution.replace("-", "_")
    (folder / f"{module}.py").write_text(source.replace("{module}", module))
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[pipebench]\n{module} = {module}\n")
