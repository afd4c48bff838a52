"""pipebench attach, with traces that torch.profiler wrote for two processes that somebody else launched."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.formats.documents import read_document
from tests.cli.command_line import CommandLine

TRAINING = Path(__file__).with_name("training.py")
AHEAD_US = 7_500_000.0


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both files."""
    folder = tmp_path_factory.mktemp("run")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(TRAINING), str(folder)]
    ranks = [
        subprocess.Popen([*command, str(rank), str(port), "marked"], stderr=subprocess.PIPE, text=True)
        for rank in (0, 1)
    ]
    for rank in ranks:
        _, said = rank.communicate(timeout=150)
        assert rank.returncode == 0, said
    return folder


@pytest.fixture
def store(pipebench: CommandLine, tmp_path: Path) -> str:
    """A row of a plan with two stages."""
    out = str(tmp_path / "results")
    asked = ("--devices", "2", "--mini-batch", "4", "--micro-batch", "1", "--planners", "uniform", "--out", out)
    made = pipebench("compare", "--models", "tiny-mmt[layers=1]", "--schedulers", "1f1b", *asked)
    assert made.code == 0, made.err
    return out


def test_a_run_that_somebody_else_launched(
    pipebench: CommandLine, store: str, traced: Path, tmp_path: Path
) -> None:
    files = [str(traced / f"rank{rank}.json") for rank in (0, 1)]
    row = str(tmp_path / "row.json")
    made = pipebench("attach", store, *files, "-o", row)
    assert made.code == 0, made.err
    assert made.out.startswith("measured ")
    assert "clocks aligned by messages" in made.out
    assert "stage 1: a micro-batch takes" in made.out
    told = attach(pipebench, store, files)
    (kept,) = read_document(row, "rows").rows
    assert kept.measured_s == pytest.approx(told["measured_s"])
    assert kept.measured_error == pytest.approx((kept.simulated_s - kept.measured_s) / kept.measured_s)
    assert told["measured_s"] == max(rank["iteration_s"] for rank in told["ranks"])
    # both ran on one clock: the messages find it, within what they can tell
    other = told["ranks"][1]
    assert abs(other["offset_ns"]) <= other["within_ns"]
    assert other["within_ns"] < 50_000_000
    first, second = told["stages"]
    assert (first["marked"], second["marked"]) == (True, True)
    assert second["measured_s"] / first["measured_s"] > 1.5  # six times the work, and others work on the machine


def test_a_clock_that_is_ahead_is_found(pipebench: CommandLine, store: str, traced: Path, tmp_path: Path) -> None:
    files = [traced / "rank0.json", traced / "rank1.json"]
    before = attach(pipebench, store, list(map(str, files)))
    document = json.loads(files[1].read_text())
    for event in document["traceEvents"]:
        if "ts" in event:
            event["ts"] = float(event["ts"]) + AHEAD_US
    shifted = tmp_path / "rank1.json"
    shifted.write_text(json.dumps(document))
    after = attach(pipebench, store, [str(files[0]), str(shifted)])
    moved = before["ranks"][1]["offset_ns"] - after["ranks"][1]["offset_ns"]
    assert moved == pytest.approx(AHEAD_US * 1e3, abs=2000)
    assert after["start_skew_s"] == pytest.approx(before["start_skew_s"], abs=2e-6)
    assert after["measured_s"] == pytest.approx(before["measured_s"])


def test_mistakes(pipebench: CommandLine, store: str, traced: Path) -> None:
    first = str(traced / "rank0.json")
    for words, reason in (
        ((store, first, first), "traces of ranks 0, 0"),
        ((f"{store}:zzzz", first), "0 rows whose key starts with 'zzzz'"),
        ((store, "nothing.json", first), "nothing.json"),
        ((store, first, str(TRAINING)), "neither a trace of torch's profiler nor a log"),
        ((store, "--warmup", "9", first, str(traced / "rank1.json")), "a rank has 5 iterations, 9 are warm-up"),
    ):
        made = pipebench("attach", *words)
        assert made.code == 2
        assert reason in made.err
        assert "Traceback" not in made.err


def test_traces_of_some_ranks_are_enough(pipebench: CommandLine, store: str, traced: Path) -> None:
    one = attach(pipebench, store, [str(traced / "rank1.json")])
    both = attach(pipebench, store, [str(traced / f"rank{rank}.json") for rank in range(2)])
    assert [each["rank"] for each in one["ranks"]] == [1]
    (same,) = [each for each in both["ranks"] if each["rank"] == 1]
    assert one["ranks"][0]["busy_s"] == same["busy_s"]


def attach(pipebench: CommandLine, store: str, files: list[str]) -> dict[str, Any]:
    made = pipebench("attach", store, *files, "--json")
    assert made.code == 0, made.err
    found: dict[str, Any] = json.loads(made.out)
    return found
