"""Other processes run the model while one measures it, and none of them stays."""

import os
import time
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.domain.errors import PipebenchError
from pipebench_torch.plugin import ProfilerOptions
from pipebench_torch.profiling.companions import Company, companions
from tests.plugins.torch.small import diamond
from tests.plugins.torch.test_profiler import measured


def company(place: int, **changes: object) -> Company:
    given = {"graph": diamond(), "model": "", "precision": "fp32", "device": "cpu", "seed": 0, **changes}
    return Company(options=ProfilerOptions(), place=place, **given)  # type: ignore[arg-type]


def busy_s(process: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_they_compute_until_the_measurement_ends() -> None:
    with companions([company(1), company(2)]) as others:
        started = [process.pid for process in others._processes]
        for size in (1, 4):
            others.turn_to(size)
            before = [busy_s(pid) for pid in started]
            time.sleep(0.5)
            assert all(busy_s(pid) > was for pid, was in zip(started, before, strict=True))
    assert all(process.returncode is not None for process in others._processes)


def test_one_that_fails_says_why() -> None:
    with (
        pytest.raises(PipebenchError, match=r"beside the measured one ended: .*no\.such\.package"),
        companions([company(1), company(2, graph=None, model="no.such.package:build")]) as others,
    ):
        others.turn_to(1)
    assert all(process.returncode is not None for process in others._processes)


def test_a_profile_says_that_it_was_not_made_alone() -> None:
    profile = measured("tiny-mmt[layers=1]", "repeats=1,least_s=0,beside=1")
    assert "measured while 1 other process ran the model" in profile.provenance.notes
    assert "beside=1" in profile.provenance.profiler
