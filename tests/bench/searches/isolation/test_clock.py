"""The CPU that a search is credited with, against work of a known amount."""

import sys
from pathlib import Path

import pytest

from pipebench.bench.searches.isolation.clock import settled_s, witness
from tests.bench.searches.isolation.scripts import HONEST, run

WORK_S = 0.3
BURN = f"""
import os, signal, time

def burn():
    began = time.process_time()
    while time.process_time() - began < {WORK_S}:
        pass

"""
BY_ITSELF = "    burn()\n"
BEFORE_THE_PROBLEM = "    pass\n"
BY_A_CHILD = (
    "    child = os.fork()\n    if child == 0:\n        burn()\n        os._exit(0)\n    os.waitpid(child, 0)\n"
)
BY_AN_ORPHAN = (
    "    parent, child = os.pipe()\n    if os.fork() == 0:\n        if os.fork() == 0:\n            os.setsid()\n"
    "            burn()\n            os.write(child, b'x')\n            os._exit(0)\n        os._exit(0)\n"
    "    os.wait()\n    os.read(parent, 1)\n"
)
BY_A_CHILD_THAT_NOBODY_WAITS_FOR = "    signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n" + BY_AN_ORPHAN.replace(
    "    os.wait()\n", ""
)


def credited_s(folder: Path, work: str, imported: str = "") -> float:
    source = BURN + imported + HONEST.replace("    stage = [", f"{work}    stage = [", 1)
    row = run(folder, source, repeat=1).row
    assert row.status == "ok", row.reason
    assert row.search_cpu_s is not None
    return row.search_cpu_s


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of descendants")
@pytest.mark.parametrize("work", [BY_ITSELF, BY_A_CHILD, BY_AN_ORPHAN], ids=["itself", "child", "orphan"])
def test_all_work_is_credited_once(tmp_path: Path, work: str) -> None:
    assert WORK_S <= credited_s(tmp_path, work) < 1.5 * WORK_S


@pytest.mark.skipif(witness() != "perf", reason="this machine has no counter that descendants inherit")
def test_work_that_wait4_does_not_see_is_credited(tmp_path: Path) -> None:
    assert WORK_S <= credited_s(tmp_path, BY_A_CHILD_THAT_NOBODY_WAITS_FOR) < 1.5 * WORK_S


def test_what_is_done_before_the_problem_is_known_is_not(tmp_path: Path) -> None:
    assert credited_s(tmp_path, BEFORE_THE_PROBLEM, "burn()\n") < WORK_S / 3


def test_what_other_machines_took_is_not_credited() -> None:
    assert settled_s(counted_s=2.1, waited_s=2.0, stolen_s=0.3) == 2.0


def test_what_nobody_waited_for_is_credited() -> None:
    assert settled_s(counted_s=2.0, waited_s=0.1, stolen_s=0.0) == 2.0
    assert settled_s(counted_s=2.0, waited_s=0.1, stolen_s=5.0) == 2.0, (
        "of a busy machine many cores are stolen from"
    )


def test_an_error_of_either_witness_hides_nothing() -> None:
    assert settled_s(counted_s=0.012, waited_s=0.010, stolen_s=0.0) == 0.010
    assert settled_s(counted_s=1.0, waited_s=0.99, stolen_s=0.0) == 0.99
