"""A command that is killed again and again ends with the same files as one that is left alone."""

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

from pipebench.cli.main import run
from tests.acceptance.test_parallel_sweeps import cluster
from tests.cli.test_track import SCRIPT

FEW = 2
"""Kills for which a few trials are enough."""
SWEEPS = [
    pytest.param(FEW, (), id="few"),
    pytest.param(24, (), id="many", marks=pytest.mark.nightly),
    pytest.param(12, ("--jobs", "2"), id="jobs", marks=pytest.mark.nightly),
]
PACKS, NIGHTS, DASKS = 60, 20, 12
SUITE = """
name = "killed"
summary = "eight quick trials for each memory"
planners = ["data-parallel", "uniform", "pipedream", "contiguous-exact"]
regimes = ["sync"]

[[workloads]]
profile = "resnet50"
devices = [2, 8]
memory = ["4GB", "8GB", "12GB", "24GB"]
mini_batch = 16
"""
SHORT = SUITE.replace('"uniform", "pipedream", ', "").replace("[2, 8]", "2").replace('"8GB", "12GB", ', "")
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


def start(*typed: str) -> "subprocess.Popen[bytes]":
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, "-m", "pipebench", *typed], stdout=quiet, stderr=quiet, env=os.environ
    )


def sweep(folder: Path, store: str, *options: str) -> "subprocess.Popen[bytes]":
    return start("compare", "--suite", str(folder / "killed.toml"), "--out", str(folder / store), *options)


def kill_after(process: "subprocess.Popen[bytes]", seconds: float) -> bool:
    """Whether it was still there to be killed."""
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    return process.wait(60) == -signal.SIGKILL


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


def whole_lines(file: Path) -> list[bytes]:
    """Those that were written to their end."""
    return file.read_bytes().split(b"\n")[:-1] if file.exists() else []


def whole_keys(store: Path) -> set[str]:
    return {json.loads(line)["row"]["key"] for line in whole_lines(store / "rows.jsonl")}


@pytest.mark.parametrize(("kills", "options"), SWEEPS)
def test_a_store_survives_kills(tmp_path: Path, kills: int, options: tuple[str, ...]) -> None:
    survives(tmp_path, kills, options)


@pytest.mark.nightly
def test_a_store_survives_kills_of_a_command_with_a_dask_cluster(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with cluster(tmp_path, workers=2) as address:
        survives(tmp_path, DASKS, ("--backend", "dask", "--scheduler-address", address))


def survives(tmp_path: Path, kills: int, options: tuple[str, ...]) -> None:
    """Nothing that was stored is lost, nothing is stored twice, and the rest is run."""
    suite, trials = (SUITE, 32) if kills > FEW else (SHORT, 4)
    (tmp_path / "killed.toml").write_text(suite)
    assert run(["compare", "--suite", str(tmp_path / "killed.toml"), "--out", str(tmp_path / "alone")]) in (0, 5)
    draw, seen = random.Random(0), set[str]()
    for _ in range(kills):
        assert kill(sweep(tmp_path, "killed", *options), tmp_path / "killed", draw)
        kept = whole_keys(tmp_path / "killed")
        assert seen <= kept
        seen = kept
    assert sweep(tmp_path, "killed", *options).wait(300) in (0, 5)
    disturbed, alone = rows(tmp_path / "killed"), rows(tmp_path / "alone")
    assert len(alone) == trials
    assert len(disturbed) == len({row["key"] for row in disturbed})
    assert quality(disturbed) == quality(alone)


@pytest.mark.nightly
def test_a_zip_is_whole_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "killed.toml").write_text(SUITE)
    assert sweep(tmp_path, "store").wait(300) in (0, 5)
    before = {file: file.read_bytes() for file in (tmp_path / "store").rglob("*") if file.is_file()}
    began = time.monotonic()
    assert start("pack", str(tmp_path / "store"), "-o", str(tmp_path / "alone.zip")).wait(60) == 0
    whole, takes_s = (tmp_path / "alone.zip").read_bytes(), time.monotonic() - began
    draw, killed, target = random.Random(0), 0, tmp_path / "killed.zip"
    for _ in range(PACKS):
        target.unlink(missing_ok=True)
        process = start("pack", str(tmp_path / "store"), "-o", str(target))
        killed += kill_after(process, draw.uniform(0.3, 1.0) * takes_s)
        assert not target.exists() or target.read_bytes() == whole
    assert killed > PACKS / 2
    assert start("pack", str(tmp_path / "store"), "-o", str(target)).wait(60) == 0
    assert target.read_bytes() == whole
    assert {file: file.read_bytes() for file in before} == before
    assert {file.name for file in tmp_path.iterdir()} == {"killed.toml", "store", "alone.zip", "killed.zip"}


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_history_keeps_its_nights(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(SCRIPT.format(states=5))
    planner, history = str(tmp_path / "mine.py"), tmp_path / "history"
    small = ("--profile", "mmt", "--devices", "1", "--budget", "1s")
    record = ("track", "record", "--history", str(history), "--planners", planner, *small)
    began = time.monotonic()
    assert start(*record).wait(120) == 0
    takes_s, draw, killed = time.monotonic() - began, random.Random(0), 0
    file = history / "nights.jsonl"
    nights = whole_lines(file)
    for _ in range(NIGHTS):
        killed += kill_after(start(*record), draw.uniform(0.3, 1.1) * takes_s)
        before, nights = nights, whole_lines(file)
        assert nights[: len(before)] == before
    assert killed > NIGHTS / 2
    assert start(*record).wait(120) == 0
    assert whole_lines(file)[:-1] == nights
