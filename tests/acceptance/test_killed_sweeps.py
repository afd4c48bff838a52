"""A sweep that is killed again and again ends with the same store as one that is left alone."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

KILLS = [6, pytest.param(24, marks=pytest.mark.nightly)]
SUITE = """
name = "killed"
summary = "thirty-two quick trials"
planners = ["data-parallel", "uniform", "pipedream", "contiguous-exact"]
regimes = ["sync"]

[[workloads]]
profile = "resnet50"
devices = [2, 8]
memory = ["4GB", "8GB", "12GB", "24GB"]
mini_batch = 16
"""
QUALITY = (
    "planner",
    "scheduler",
    "problem_id",
    "status",
    "plan_id",
    "schedule_id",
    "simulated_s",
    "bound_s",
    "gap",
)


def sweep(folder: Path, store: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "pipebench", "compare", "--suite", str(folder / "killed.toml")]
    quiet = subprocess.DEVNULL
    return subprocess.Popen([*command, "--out", str(folder / store)], stdout=quiet, stderr=quiet, env=os.environ)


def rows(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "rows.jsonl").read_bytes().splitlines()
    return [json.loads(line)["row"] for line in lines]


def quality(found: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {row["key"]: [row[name] for name in QUALITY] for row in found}


def kill(process: "subprocess.Popen[bytes]", store: Path, draw: random.Random) -> bool:
    """Kill the sweep while it starts, or a moment after it has stored something; whether it was still there."""
    before = size(store)
    if draw.random() < 0.25:
        time.sleep(draw.uniform(0.0, 1.0))
    else:
        while process.poll() is None and size(store) == before:
            time.sleep(0.002)
        time.sleep(draw.uniform(0.0, 0.1))
    process.send_signal(signal.SIGKILL)
    return process.wait(60) == -signal.SIGKILL


def size(store: Path) -> int:
    file = store / "rows.jsonl"
    return file.stat().st_size if file.exists() else 0


@pytest.mark.parametrize("kills", KILLS)
def test_a_store_survives_kills(tmp_path: Path, kills: int) -> None:
    (tmp_path / "killed.toml").write_text(SUITE)
    assert sweep(tmp_path, "alone").wait(300) in (0, 5)
    draw = random.Random(0)
    killed = sum(kill(sweep(tmp_path, "killed"), tmp_path / "killed", draw) for _ in range(kills))
    assert killed == kills
    assert sweep(tmp_path, "killed").wait(300) in (0, 5)
    disturbed, alone = rows(tmp_path / "killed"), rows(tmp_path / "alone")
    assert len(alone) == 32
    assert len(disturbed) == len({row["key"] for row in disturbed})
    assert quality(disturbed) == quality(alone)
