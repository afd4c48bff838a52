"""The light modules of piper, tarnawski and alpa: found by name, heavy code loaded on demand only."""

import subprocess
import sys
from importlib import import_module

import pytest

PLUGINS = [
    ("pipebench_piper", "piper"),
    ("pipebench_tarnawski", "tarnawski"),
    ("pipebench_alpa", "alpa-inter"),
]


@pytest.mark.parametrize(("package", "name"), PLUGINS)
def test_descriptor(package: str, name: str) -> None:
    (planner,) = import_module(f"{package}.plugin").pipebench_planners()
    module, _, attribute = planner.load.partition(":")
    assert planner.name == name
    assert planner.options() is not None
    assert callable(getattr(import_module(module), attribute))


@pytest.mark.parametrize(("package", "name"), PLUGINS)
def test_listing_is_light(package: str, name: str) -> None:
    code = f"import sys, {package}.plugin; print(sorted({{'numpy', 'numba', 'networkx'}} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
