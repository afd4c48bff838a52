"""The weather of a night: shares of the time between two looks, nothing where the system says nothing."""

from pathlib import Path

import pytest

from pipebench.track.nights import conditions as module
from pipebench.track.nights.conditions import LoadCounters, load_counters, machine_load

BEFORE = LoadCounters(at_s=10.0, load=0.5, waited_us=1_000_000, stolen=(100, 1000))
AFTER = LoadCounters(at_s=20.0, load=1.25, waited_us=3_500_000, stolen=(150, 2000))


def test_shares_of_the_time_between() -> None:
    found = machine_load(BEFORE, AFTER)
    assert (found.load, found.pressure_share, found.steal_share) == ((0.5, 1.25), 0.25, 0.05)


def test_a_system_that_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PRESSURE", "STAT", "QUOTA"):
        monkeypatch.setattr(module, name, tmp_path / "none")
    found = machine_load(load_counters(), load_counters())
    assert (found.pressure_share, found.steal_share, found.quota_cpus) == (None, None, None)


def test_the_files_of_linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "PRESSURE": "some avg10=1.00 avg60=0.5 avg300=0.1 total=123456\nfull avg10=0.00 total=7\n",
        "STAT": "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n",
        "QUOTA": "150000 100000\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(module, name, tmp_path / name)
    sky = load_counters()
    assert (sky.waited_us, sky.stolen) == (123456, (8, 36))
    assert machine_load(sky, sky).quota_cpus == 1.5
