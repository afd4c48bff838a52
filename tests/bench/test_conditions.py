"""A busy machine is said beside a measured run."""

import os

import pytest

from pipebench.bench.conditions import busy_machine


def test_load_that_takes_time_from_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert busy_machine(1.9) == []
    (line,) = busy_machine(8.0)
    assert "load 8.0 on 4 cores" in line
