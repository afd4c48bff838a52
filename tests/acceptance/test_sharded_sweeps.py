"""A sweep in shards, some of them killed and run again, merges to the store that one machine would have."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_killed_sweeps import SUITE, kill, start, sweep, whole_keys

TIMES = ("search_cpu_s", "search_wall_s", "search_cold_s", "search_samples", "search_ratio", "elapsed_s")
CIRCUMSTANCES = ("search_peak_bytes", "parallel", "notices", "environment", "output")
"""Of a row, what differs from run to run besides."""
CASES = [
    pytest.param('memory = ["4GB", "24GB"]', 3, 1, id="few", marks=pytest.mark.nightly),
    pytest.param(
        'memory = ["4GB", "6GB", "8GB", "10GB", "12GB", "16GB", "20GB", "24GB"]',
        8,
        3,
        id="many",
        marks=[pytest.mark.nightly, pytest.mark.timeout(1800)],
    ),
]


def content(store: Path) -> list[dict[str, Any]]:
    """The lines of a store in the order of the file, without times."""
    found = []
    for line in (store / "rows.jsonl").read_bytes().splitlines():
        stored = json.loads(line)
        for name in ("finished_at", "checksum"):
            del stored[name]
        for name in (*TIMES, *CIRCUMSTANCES):
            del stored["row"][name]
        found.append(stored)
    return found


def objects(store: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (store / "objects").rglob("*.json")}


@pytest.mark.parametrize(("memory", "count", "kills"), CASES)
def test_merged_shards_are_the_store_of_one_machine(tmp_path: Path, memory: str, count: int, kills: int) -> None:
    (tmp_path / "killed.toml").write_text(SUITE.replace('memory = ["4GB", "8GB", "12GB", "24GB"]', memory))
    assert sweep(tmp_path, "alone", "--no-wait").wait(300) in (0, 5)
    alone = content(tmp_path / "alone")
    draw = random.Random(count)
    doomed = draw.sample(range(1, count + 1), kills)
    for number in range(1, count + 1):
        name, options = f"shards/{number}", ("--shard", f"{number}/{count}", "--no-wait")
        if number in doomed:
            assert kill(sweep(tmp_path, name, *options), tmp_path / name, draw)
        else:
            assert sweep(tmp_path, name, *options).wait(300) in (0, 5)
    merge = ("merge", str(tmp_path / "shards"), "--out")
    stored = set().union(*(whole_keys(tmp_path / "shards" / str(number)) for number in range(1, count + 1)))
    assert len(stored) < len(alone)  # something was lost to the kills
    assert start(*merge, str(tmp_path / "early")).wait(60) == 5
    for number in doomed:
        name = f"shards/{number}"
        assert sweep(tmp_path, name, "--shard", f"{number}/{count}", "--no-wait").wait(300) in (0, 5)
    assert start(*merge, str(tmp_path / "merged")).wait(60) == 0
    assert content(tmp_path / "merged") == alone
    assert objects(tmp_path / "merged") == objects(tmp_path / "alone")
    names = {file.name for file in (tmp_path / "merged").iterdir()}
    assert names == {file.name for file in (tmp_path / "alone").iterdir()}
