"""What pytest-benchmark writes, as it is and as it should not be."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.track.measurement.benchmark_json import read_benchmarks, read_nightly_benchmarks
from pipebench.track.nights.conditions import this_machine
from tests.track.made_nights import MACHINE

NOW = datetime(2026, 1, 2, 3, tzinfo=UTC)
STATS = {"min": 1.0, "median": 2.0, "iqr": 0.5, "max": 3.0, "rounds": 5, "mean": 2.1}


def file(folder: Path, **fields: Any) -> Path:
    known: dict[str, Any] = {
        "machine_info": {
            "system": "Linux",
            "machine": "x86_64",
            "cpu": {"brand_raw": MACHINE.cpu, "count": 4, "flags": ["sse"]},
        },
        "benchmarks": [{"fullname": "t.py::a", "stats": STATS, "extra_info": {"counters": {"n": 7}, "x": 1.5}}],
        "datetime": "2026-01-02T02:00:00+00:00",
        "version": "5.1.0",
    }
    made = folder / "benchmarks.json"
    made.write_text(json.dumps(known | fields))
    return made


def test_seconds_and_counters_are_taken(tmp_path: Path) -> None:
    found = read_benchmarks(file(tmp_path), MACHINE, NOW)
    assert found.at == "2026-01-02T02:00:00+00:00"
    assert [(each.name, each.seconds["median"], each.counters) for each in found.benchmarks] == [
        ("t.py::a", 2.0, {"n": 7})
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"benchmarks": []}, "holds no benchmark"),
        ({"datetime": "2026-01-05T00:00:00+00:00"}, "in the future: two clocks"),
        ({"datetime": "2025-12-01T00:00:00+00:00"}, "not this night"),
        ({"datetime": "yesterday"}, "its datetime"),
        ({"machine_info": {"system": "Darwin"}}, "another class of machine: system is 'Darwin', here 'Linux'"),
        ({"machine_info": {"cpu": {"brand_raw": "Z80", "count": 1}}}, "cpu is 'Z80'"),
        ({"benchmarks": [{"fullname": "a"}]}, "not what pytest-benchmark writes"),
        (
            {"benchmarks": [{"fullname": "a", "stats": STATS, "extra_info": {"counters": {"n": 1.5}}}]},
            "must be whole numbers",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PipebenchError, match=message):
        read_benchmarks(file(tmp_path, **fields), MACHINE, NOW)


def test_a_file_that_is_no_json(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("{")
    with pytest.raises(PipebenchError, match="not what pytest-benchmark writes"):
        read_benchmarks(path, MACHINE, NOW)


def test_what_the_real_plugin_writes_here_is_read(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    test.write_text(
        "def test_it(benchmark):\n    benchmark.extra_info['counters'] = {'n': 3}\n    benchmark(len, [])\n"
    )
    made = tmp_path / "made.json"
    words = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--benchmark-max-time=0.01"]
    command = [sys.executable, "-m", "pytest", *words, f"--benchmark-json={made}", str(test)]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    subprocess.run(command, check=True, cwd=tmp_path, env=alone)  # under xdist the plugin measures nothing
    found = read_benchmarks(made, this_machine(), datetime.now(UTC) + timedelta(seconds=1))
    assert found.benchmarks[0].counters == {"n": 3}


RATIOS = {"flavour": "numpy", "calibration": "c", "ratios": [3.0, 1.0, 2.0], "discarded": 1}


def entry(**extra: Any) -> dict[str, Any]:
    return {"benchmarks": [{"fullname": "t.py::a", "stats": STATS, "extra_info": extra}]}


def test_ratios_and_versions_are_taken(tmp_path: Path) -> None:
    machine = {"system": "Linux", "python_version": "3.11.7", "pipebench": {"python": "3.11", "numpy": "2.0"}}
    found = read_benchmarks(file(tmp_path, **entry(pipebench=RATIOS), machine_info=machine), MACHINE, NOW)
    only = found.benchmarks[0]
    assert only.paired is not None
    assert (only.paired.rounds, only.paired.calibration, only.paired.discarded) == ({"numpy": (2.0,)}, "c", 1)
    assert only.fingerprint == {"python": "3.11", "numpy": "2.0", "reference": "numpy"}


@pytest.mark.parametrize(
    "wrong", [{"ratios": [0.0]}, {"ratios": "x"}, {"ratios": [float("inf")]}, {"moon": 1}, {"flavour": None}]
)
def test_ratios_that_nobody_wrote_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(PipebenchError, match=r"t.py::a: its extra_info\['pipebench'\]|not what pytest-benchmark"):
        read_benchmarks(file(tmp_path, **entry(pipebench=RATIOS | wrong)), MACHINE, NOW)


def test_a_benchmark_whose_pairs_were_all_discarded_keeps_its_segment(tmp_path: Path) -> None:
    found = read_benchmarks(file(tmp_path, **entry(pipebench=RATIOS | {"ratios": []})), MACHINE, NOW).benchmarks[0]
    assert found.fingerprint["reference"] == "numpy"
    assert found.paired is not None
    assert found.paired.rounds == {}


def processes(folder: Path, *fields: dict[str, Any]) -> list[Path]:
    """Files of one night."""
    made = []
    for number, each in enumerate(fields):
        (folder / str(number)).mkdir()
        made.append(file(folder / str(number), **({"datetime": f"2026-01-02T02:0{number}:00+00:00"} | each)))
    return made


def test_several_files_are_several_processes_of_one_night(tmp_path: Path) -> None:
    slower = {"benchmarks": [{"fullname": "t.py::a", "stats": STATS | {"median": 4.0, "min": 0.5, "max": 9.0}}]}
    found = read_nightly_benchmarks(
        processes(tmp_path, entry(pipebench=RATIOS), entry(pipebench=RATIOS | {"ratios": [5.0]}), slower),
        MACHINE,
        NOW,
    )
    only = found.benchmarks[0]
    assert only.paired is not None
    assert only.paired.rounds == {"numpy": (2.0, 5.0)}
    assert only.paired.discarded == 2
    assert only.seconds == {"min": 0.5, "median": 2.0, "iqr": 0.5, "max": 9.0}
    assert found.at == "2026-01-02T02:02:00+00:00"


def test_counters_that_two_processes_disagree_on_are_said_and_not_judged(tmp_path: Path) -> None:
    found = read_nightly_benchmarks(
        processes(tmp_path, entry(counters={"n": 1, "m": 2}), entry(counters={"n": 1, "m": 3})), MACHINE, NOW
    )
    assert found.benchmarks[0].counters == {"n": 1}
    assert found.notices == ("t.py::a: two runs of this night differ in m",)


def test_files_of_several_commits_and_the_same_file_twice_are_refused(tmp_path: Path) -> None:
    commits = [{"commit_info": {"id": letter * 40, "dirty": False}} for letter in "ab"]
    with pytest.raises(PipebenchError, match="ran at several commits"):
        read_nightly_benchmarks(processes(tmp_path, *commits), MACHINE, NOW)
    with pytest.raises(PipebenchError, match="two of these are one run"):
        read_nightly_benchmarks([tmp_path / "0" / "benchmarks.json"] * 2, MACHINE, NOW)


def test_a_commit_is_a_hash_or_nothing(tmp_path: Path) -> None:
    for number, (said, commit) in enumerate([("unversioned", ""), (None, ""), ("a" * 40, "a" * 40)]):
        (tmp_path / str(number)).mkdir()
        info = {"commit_info": {"id": said, "dirty": False}}
        assert read_benchmarks(file(tmp_path / str(number), **info), MACHINE, NOW).commit == commit
