"""Timing trials of one machine exclude each other; parallel ones exclude timing trials only."""

import subprocess
import sys
import time

from pipebench.bench.sweeps.sweep import machine_shared, machine_to_itself

HOLD = """
import sys, time
from pipebench.bench.sweeps.sweep import machine_shared, machine_to_itself
with {how}():
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(how: str) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD.replace("{how}", how)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_timing_trial_waits_and_then_says_that_it_is_not_alone() -> None:
    for how in ("machine_to_itself", "machine_shared"):
        with holder(how) as other:
            began = time.monotonic()
            with machine_to_itself(patience_s=0.2) as alone:
                assert not alone
            assert time.monotonic() - began >= 0.2
            other.communicate("go\n")
        with machine_to_itself(patience_s=0.2) as alone:
            assert alone


def test_parallel_runs_do_not_exclude_each_other() -> None:
    with holder("machine_shared") as other:
        began = time.monotonic()
        with machine_shared():
            assert time.monotonic() - began < 5
        other.communicate("go\n")


def test_a_trial_that_ends_makes_room_for_one_that_waits() -> None:
    with holder("machine_to_itself") as other:
        assert other.stdin is not None
        other.stdin.write("go\n")
        other.stdin.flush()
        with machine_to_itself(patience_s=20) as alone:
            assert alone
