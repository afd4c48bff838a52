"""Kernels kept on disk are compiled again when anything that they are made of has changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

OUTER = """
from pipebench.algorithms.jit import kernel
from mine.inner import AMOUNT, twice

@kernel
def outer(x: int) -> int:
    return twice(x) + AMOUNT
"""
INNER = """
from pipebench.algorithms.jit import kernel
from mine import constants

AMOUNT = constants.AMOUNT

@kernel
def twice(x: int) -> int:
    return 2 * x
"""
RUN = "from mine.outer import outer; print(outer(10), sum(outer.stats.cache_hits.values()))"

TUPLED = """
from typing import NamedTuple
from pipebench.algorithms.jit import kernel

class Pair(NamedTuple):
    a: int
    b: int

@kernel
def total(pair: Pair) -> int:
    return pair.a + pair.b

def outer(x: int) -> int:
    return total(Pair(x, 1))

outer.stats = total.stats
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A plugin of three modules: a kernel that calls another one's, which takes a constant from a third."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name, text in (("__init__", ""), ("outer", OUTER), ("inner", INNER), ("constants", "AMOUNT = 5\n")):
        (folder / f"{name}.py").write_text(text)
    return folder


def run(package: Path) -> str:
    """What the kernel gives, and whether it came from the disk."""
    environment = os.environ | {
        "NUMBA_CACHE_DIR": str(package.parent / "kernels"),
        "PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def test_a_kernel_is_compiled_again_when_one_that_it_calls_has_changed(package: Path) -> None:
    assert run(package) == "25 0"
    assert run(package) == "25 1"
    (package / "inner.py").write_text(INNER.replace("2 * x", "3 * x"))
    assert run(package) == "35 0"
    assert run(package) == "35 1"
    (package / "constants.py").write_text("AMOUNT = 7\n")
    assert run(package) == "37 0"
    (package / "inner.py").write_text(INNER)
    (package / "constants.py").write_text("AMOUNT = 5\n")
    assert run(package) == "25 0"


def test_a_kernel_of_a_class_that_is_gone_is_compiled_again(package: Path) -> None:
    (package / "outer.py").write_text(TUPLED)
    assert run(package) == "11 0"
    assert run(package) == "11 1"
    (package / "outer.py").write_text(TUPLED.replace("Pair", "Couple"))
    assert run(package) == "11 0"
