"""pipebench accuracy, as a user runs it."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipebench.bench.accuracy import reader
from tests.bench.accuracy.tables import SMALL, table
from tests.cli.command_line import CommandLine
from tests.nightly import mostly_at_night

ROWS = (
    SMALL,
    SMALL | {"id": "piped", "tp": "1", "pp": "4", "mem_gib": "7.5"},
    SMALL | {"id": "open", "recompute": "", "mbs": ""},
    SMALL | {"id": "experts", "ep": "8"},
)


@pytest.fixture
def runs(tmp_path: Path) -> str:
    path = tmp_path / "runs.csv"
    path.write_bytes(table(*ROWS))
    return str(path)


def test_a_table_of_errors_reasons_and_assumptions(pipebench: CommandLine, runs: str) -> None:
    done = pipebench("accuracy", runs)
    assert done.code == 0, done.err
    assert "4 runs, 3 predicted: mean error" in done.out
    assert re.search(r"gpt 8x1024 on 8 x A100-80GB +3 ", done.out)
    assert "experts that the suite does not know, 1 run: experts (model is gpt, ep is 8)" in done.out
    assert re.search(r"recompute +none +1 ", done.out)
    assert "memory of 1 run: mean error" in done.out
    assert re.search(r"^small\s+(measured )?250 ms", done.out, re.MULTILINE)


def test_the_json_has_a_row_for_each_run(pipebench: CommandLine, runs: str) -> None:
    plain = json.loads(pipebench("accuracy", runs, "--json", "--alternatives").out)
    assert [row["id"] for row in plain["rows"]] == ["small", "piped", "open", "experts"]
    keys = {"id", "group", "measured_s", "simulated_s", "low_s", "high_s", "memory_bytes", "reason"}
    assert all(keys | {"measured_memory_bytes"} <= set(row) for row in plain["rows"])
    last = plain["rows"][-1]
    assert (last["simulated_s"], last["reason"]) == (None, "experts that the suite does not know")
    assert plain["reasons"] == {"experts that the suite does not know": 1}
    assert {each["value"] for each in plain["variants"] if each["field"] == "recompute"} == {
        "none",
        "selective",
        "full",
    }


def test_the_page_shows_every_point_and_every_run(pipebench: CommandLine, runs: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = pipebench("accuracy", runs, "--html", str(page))
    assert done.code == 0, done.err
    text = page.read_text()
    assert len(re.findall(r"<title>\w+: measured 250 ms, predicted", text)) == 3
    assert all(f"<td>{row['id']}</td>" in text for row in ROWS)
    assert "experts that the suite does not know" in text


@pytest.mark.nightly
def test_two_processes_say_the_same_as_one(pipebench: CommandLine, runs: str) -> None:
    one, two = (json.loads(pipebench("accuracy", runs, "--json", "--jobs", jobs).out) for jobs in ("1", "2"))
    assert one == two


def test_groups_along_another_axis(pipebench: CommandLine, runs: str) -> None:
    done = pipebench("accuracy", runs, "--by", "degrees", "--worst", "0")
    assert "tp1 pp4 dp2" in done.out
    assert "largest errors" not in done.out


@pytest.mark.parametrize("step", mostly_at_night([1, 8], [8]))
def test_the_table_that_ships(pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """All of its runs, or every eighth."""
    parsed = reader.parse_runs
    monkeypatch.setattr(reader, "parse_runs", lambda *given: parsed(*given)[::step])
    done = pipebench("accuracy", "published", "--json")
    assert done.code == 0, done.err
    plain = json.loads(done.out)
    assert len(plain["rows"]) == math.ceil(161 / step)
    assert plain["errors"]["count"] >= 40 / step
    assert sum(plain["reasons"].values()) + plain["errors"]["count"] == len(plain["rows"])


def test_nothing_that_can_be_predicted(pipebench: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(table(SMALL | {"ep": "8"}))
    done = pipebench("accuracy", str(path), "--html", str(tmp_path / "page.html"))
    assert done.code == 4
    assert "1 run, none of them predicted" in done.out


def test_runs_that_are_not_predicted_are_named_with_their_figures(pipebench: CommandLine, tmp_path: Path) -> None:
    """The first three of each reason; figures that neighbours share are there once. JSON and page have all."""
    path, page = tmp_path / "runs.csv", tmp_path / "page.html"
    wrong = [SMALL | {"id": name, "dp": dp} for name, dp in (("a", "4"), ("b", "4"), ("c", "8"), ("d", "3"))]
    path.write_bytes(table(SMALL, *wrong, SMALL | {"id": "e", "seq": ""}))
    done = pipebench("accuracy", str(path), "--html", str(page))
    text = " ".join(done.out.split())
    reason = "the product of the degrees is not the number of GPUs"
    assert f"{reason}, 4 runs: a, b (2 x 2 x 4 = 16, gpus is 8); c (2 x 2 x 8 = 32, gpus is 8) and 1 more" in text
    assert "column seq is empty, 1 run: e" in text
    rows = {row["id"]: row for row in json.loads(pipebench("accuracy", str(path), "--json").out)["rows"]}
    assert (rows["d"]["reason"], rows["d"]["detail"]) == (reason, "2 x 2 x 3 = 12, gpus is 8")
    assert (rows["e"]["reason"], rows["small"]["detail"]) == ("column seq is empty", "")
    assert f"{reason} (2 x 2 x 3 = 12, gpus is 8)" in page.read_text()


def test_a_run_that_would_not_fit_is_said_at_the_end(pipebench: CommandLine, tmp_path: Path) -> None:
    path, page = tmp_path / "runs.csv", tmp_path / "page.html"
    large = {"recompute": "none", "mbs": "64", "gbs": "256", "seq": "2048"}
    path.write_bytes(table(SMALL, SMALL | large | {"id": "large"}))
    done = pipebench("accuracy", str(path), "--html", str(page))
    said = "1 run would not fit its device as it is said: the row or the predicted memory is wrong: large ("
    assert said in " ".join(done.out.split())
    assert "of 2 runs" in done.out
    assert " of 85.0 GB)" in done.out.splitlines()[-1]
    assert said in page.read_text()
    small, row = json.loads(pipebench("accuracy", str(path), "--json").out)["rows"]
    assert (small["fit"], row["fit"], row["device_memory_bytes"]) == ("fits", "does not fit", round(79.14 * 2**30))
    assert row["memory_high_bytes"] > row["device_memory_bytes"] > small["memory_high_bytes"]
    path.write_bytes(table(SMALL | {"device": "A100-80GB?"}))
    one = pipebench("accuracy", str(path)).out
    assert "would not fit" not in one
    assert re.search(r"% of 1 run$", one, re.MULTILINE)
    assert "device of 1 run\n" in one


def test_memory_that_the_row_says_is_the_limit(pipebench: CommandLine, tmp_path: Path) -> None:
    """An H100 of 96 GB, whose kernels are those of the H100 with 80 GB."""
    path = tmp_path / "runs.csv"
    path.write_bytes(table(SMALL | {"device": "H100-96GB"}))
    (row,) = json.loads(pipebench("accuracy", str(path), "--json").out)["rows"]
    assert row["device_memory_bytes"] == 96 * 10**9


def test_a_wrong_table_is_one_line(pipebench: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_bytes(table(SMALL | {"iter_s": "-1"}))
    done = pipebench("accuracy", str(path))
    assert done.code == 2
    assert done.err.startswith(f"pipebench: {path}: row 2, column iter_s: '-1'")
    assert pipebench("accuracy", str(tmp_path / "none.csv")).code == 2


def test_kernels_are_kept_for_the_next_command(runs: str, tmp_path: Path) -> None:
    kernels = tmp_path / "kernels"
    line = [sys.executable, "-m", "pipebench", "accuracy", runs, "--json"]
    done = subprocess.run(
        line, env={**os.environ, "NUMBA_CACHE_DIR": str(kernels)}, capture_output=True, text=True, check=True
    )
    assert [row["reason"] for row in json.loads(done.stdout)["rows"]][:3] == ["", "", ""]
    assert list(kernels.glob("simulation_*/kernel.run-*.nbi")), sorted(each.name for each in kernels.iterdir())


def test_with_more_groups_than_markers_a_marker_is_a_device(pipebench: CommandLine, tmp_path: Path) -> None:
    devices = ("A100-80GB", "H100")
    many = [
        SMALL | {"id": f"{device} {layers}", "layers": str(layers), "device": device}
        for layers in range(4, 14)
        for device in devices
    ]
    runs, page = tmp_path / "many.csv", tmp_path / "page.html"
    for rows, words in ((many, devices), (many[:4], ("gpt 4x1024 on 8 x A100-80GB", "gpt 5x1024 on 8 x H100"))):
        runs.write_bytes(table(*rows))
        assert pipebench("accuracy", str(runs), "--html", str(page)).code == 0
        chart = page.read_text().partition("<svg")[2].partition("</svg>")[0]
        said = re.findall(r"<text[^>]*>([^<]*)</text>", chart)
        assert set(words) <= set(said), said
    assert not set(devices) & set(said)
