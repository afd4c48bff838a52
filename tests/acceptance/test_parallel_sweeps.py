"""Trials side by side, on this machine and on a Dask cluster, give what they give one by one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pipebench.bench.sweeps import backends
from tests.cli.command_line import CommandLine

SUITE = """
name = "sixteen"
summary = "sixteen cells"
planners = ["data-parallel", "uniform", "pipedream", "contiguous-exact"]
regimes = ["sync"]

[[workloads]]
profile = "resnet50"
devices = [2, 8]
memory = ["4GB", "16GB"]
mini_batch = 16
"""
TIMES = {
    "elapsed_s",
    "search_cpu_s",
    "search_wall_s",
    "search_cold_s",
    "search_samples",
    "search_ratio",
    "search_peak_bytes",
}
SURROUNDINGS = TIMES | {"parallel", "environment", "output", "notices", "key"}


def compare(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pipebench", "compare", "--suite", str(folder / "sixteen.toml"), *options]
    return subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=300, check=False)


def quality(done: "subprocess.CompletedProcess[str]") -> list[dict[str, Any]]:
    assert done.returncode in (0, 5), done.stderr
    return [
        {name: value for name, value in row.items() if name not in SURROUNDINGS}
        for row in json.loads(done.stdout)["rows"]
    ]


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """A scheduler and worker processes on this machine; gives the address."""
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    started = [subprocess.Popen([*scheduler, "--scheduler-file", str(file)], **quiet)]
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
        own = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder / "dask")]
        started += [subprocess.Popen([*worker, *own], **quiet) for _ in range(workers)]
        yield json.loads(file.read_text())["address"]
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sweep")
    (made / "sixteen.toml").write_text(SUITE)
    return made


@pytest.fixture(scope="module")
def serial(folder: Path) -> list[dict[str, Any]]:
    return quality(compare(folder))


@pytest.mark.nightly
def test_two_workers_of_this_machine(folder: Path, serial: list[dict[str, Any]]) -> None:
    done = compare(folder, "--jobs", "2", "--out", str(folder / "store"))
    assert len(serial) == 16
    assert quality(done) == serial
    assert all(row["parallel"] for row in json.loads(done.stdout)["rows"])
    again = compare(folder, "--jobs", "2", "--out", str(folder / "store"))
    assert "16 cached, 0 to run" in again.stderr
    assert quality(again) == serial


@pytest.mark.nightly
def test_two_workers_of_a_dask_cluster(folder: Path, serial: list[dict[str, Any]]) -> None:
    pytest.importorskip("distributed")
    with cluster(folder, workers=2) as address:
        done = compare(folder, "--backend", "dask", "--scheduler-address", address)
    assert quality(done) == serial
    assert all(row["parallel"] for row in json.loads(done.stdout)["rows"])


def test_a_dask_address_nobody_listens_on_is_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(backends, "CONNECT_S", 0.5)  # a user waits longer for a cluster
    store = folder / "unused"
    suite = ("--suite", str(folder / "sixteen.toml"))
    done = CommandLine(capsys)("compare", *suite, "--scheduler-address", "tcp://127.0.0.1:9", "--out", str(store))
    assert done.code == 2
    (line,) = [line for line in done.err.splitlines() if not line.endswith("to run")]
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in line
    assert (store / "rows.jsonl").read_bytes() == b""


@pytest.mark.parametrize("begun", [False, True], ids=["in their imports", "at work"])
def test_ctrl_c_says_one_line_whatever_the_workers_are_at(tmp_path: Path, begun: bool) -> None:
    """The terminal sends it to them too; more trials wait than are sent to workers at once."""
    (tmp_path / "mine.py").write_text("import time\ndef plan(problem, context):\n    time.sleep(60)\n")
    (tmp_path / "sixteen.toml").write_text(SUITE)
    sources = ["--suite", "sixteen.toml", "--planners", "./mine.py", "--timeout", "60", "--rounds", "4"]
    heard = (
        "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler)"  # in the background, too
    )
    program = f"{heard}; runpy.run_module('pipebench', run_name='__main__')"
    running = subprocess.Popen(
        [sys.executable, "-c", program, "compare", *sources, "--jobs", "2", "--out", "store"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stderr is not None
    first = running.stderr.readline()
    workers: list[str] = []
    while len(workers) < 2:
        time.sleep(0.05)
        found = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        workers = [each for each in found if "popen_loky" in Path(f"/proc/{each}/cmdline").read_text()]
    time.sleep(3.0 if begun else 0.2)
    os.killpg(running.pid, signal.SIGINT)
    _, rest = running.communicate(timeout=60)
    assert first.startswith("0 cached")
    assert rest == "pipebench: interrupted after 0 finished trials\n"
    assert running.returncode == 130
