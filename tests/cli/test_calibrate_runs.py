"""pipebench calibrate, as a user runs it, and --calibration of other commands."""

import json
from pathlib import Path

import pytest

from pipebench.formats.calibrations import read_calibration
from pipebench.hooks.manager import Host
from tests.bench.accuracy.tables import table
from tests.bench.attachment.card_trace import ALL_REDUCE, PRODUCT, card_trace, write_trace
from tests.bench.calibration.logs import megatron
from tests.bench.calibration.simulated import DEVICE, layouts, simulated_runs
from tests.cli.command_line import CommandLine

TRUE = {"launch_us": 40.0}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = [
        {
            name: str(value)
            for name in each.__struct_fields__
            if (value := getattr(each, name)) not in (None, "", ())
        }
        for each in simulated_runs(Host(), layouts()[:4], TRUE)
    ]
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    path.write_bytes(table(*rows))
    return str(path)


def test_a_calibration_is_written_and_taken(pipebench: CommandLine, runs: str, tmp_path: Path) -> None:
    out = str(tmp_path / "a100.toml")
    done = pipebench("calibrate", runs, "-o", out)
    assert done.code == 0, done.err
    assert "4 runs of megatron-deepspeed on A100-SXM4-80GB" in done.out
    assert "each run by a fit without it" in done.out
    assert f"{out} written" in done.err
    file = read_calibration(out)
    assert file.constants["launch_us"] == pytest.approx(40, rel=0.1)
    assert file.errors["unseen"] < file.errors["before"]
    assert [run.id for run in file.runs] == [run.id for run in layouts()[:4]]
    plain, tuned = (
        json.loads(pipebench("accuracy", runs, "--json", *more).out)["errors"]["mean_absolute"]
        for more in ((), ("--calibration", out))
    )
    assert tuned < 0.1 * plain


def test_a_workload_takes_the_file(pipebench: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    constants = "[constants]\nproduct_factor = 1.2\nlaunch_us = 80\nstream_share = 0.7"
    path.write_text(f"device = 'A100-SXM4-40GB'\nframework = 'megatron'\n{constants}")
    common = (
        "plan", "layout", "-m", "llm[architecture=gpt2,layers=4,hidden=512,heads=8,vocab=4096,sequence=256]",
        "--cluster", "dgx-a100", "-n", "4", "--mini-batch", "16", "--precision", "bf16", "--json",
    )  # fmt: skip
    usual = pipebench(*common, "--framework", "megatron")
    tuned = pipebench(*common, "--framework", "megatron", "--calibration", str(path))
    assert usual.code == tuned.code == 0, tuned.err
    rows = [json.loads(each.out) for each in (usual, tuned)]
    assert rows[1]["simulated_s"] > 1.1 * rows[0]["simulated_s"]
    # Published runs say nothing of these constants, and no run of the calibration was left out.
    assert [row.get("simulated_low_s") is None for row in rows] == [False, True]
    text = path.read_text()
    path.write_text(text + "\n[interval]\nlow = 0.9\nhigh = 1.2\ncount = 30\nleft_out = 'runs'\n")
    own = json.loads(pipebench(*common, "--framework", "megatron", "--calibration", str(path)).out)
    assert own["simulated_low_s"] == pytest.approx(0.9 * own["simulated_s"])
    assert own["simulated_high_s"] == pytest.approx(1.2 * own["simulated_s"])
    alone = pipebench(*common, "--calibration", str(path))
    assert alone.code == 2
    assert "give --framework megatron" in alone.err
    other = pipebench(*common, "--framework", "torchtitan", "--calibration", str(path))
    assert "not of 'torchtitan'" in other.err


def test_constants_that_are_no_better_are_not_written_without_force(
    pipebench: CommandLine, tmp_path: Path
) -> None:
    log, out = tmp_path / "train.log", tmp_path / "c.toml"
    log.write_text(megatron())
    once = pipebench("calibrate", str(log), "--device", DEVICE, "-o", str(out))
    assert once.code == 1
    assert "one run cannot be left out of a fit" in once.out
    assert "give --force" in once.err
    assert not out.exists()
    forced = pipebench("calibrate", str(log), "--device", DEVICE, "-o", str(out), "--force")
    assert forced.code == 0
    assert f"{out} written (1 constant)" in forced.err
    assert read_calibration(str(out)).framework == "megatron-v2"


def test_what_a_log_does_not_say_is_printed_as_it_was_taken(pipebench: CommandLine, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(megatron())
    done = pipebench("calibrate", str(log), "--device", "H100-SXM5-80GB")
    assert done.code == 0, done.err
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert "not said taken as runs mean |error| mean error" in lines
    for words in ("generation of Megatron-LM megatron 1", "optimizer sharding zero1 1"):
        assert any(line.startswith(words) for line in lines)
    told = json.loads(pipebench("calibrate", str(log), "--device", "H100-SXM5-80GB", "--json").out)
    assert [each["field"] for each in told["variants"]] == [
        "generation of Megatron-LM",
        "optimizer sharding",
        "tensor-parallel overlap",
    ]
    before = told["before"]["mean_absolute"]
    assert all(each["errors"]["mean_absolute"] == before for each in told["variants"])


@pytest.mark.nightly
def test_two_processes_say_the_same_as_one(pipebench: CommandLine, runs: str) -> None:
    one, two = (json.loads(pipebench("calibrate", runs, "--json", "--jobs", jobs).out) for jobs in ("1", "2"))
    assert one == two


def test_what_is_wrong_is_one_line(pipebench: CommandLine, tmp_path: Path) -> None:
    assert pipebench("calibrate", str(tmp_path / "none.csv")).code == 2
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1,2\n")
    done = pipebench("calibrate", str(bad))
    assert done.code == 2
    assert "neither a table of runs nor a log" in done.err
    assert pipebench("calibrate").code == 2


def test_a_trace_of_a_run_is_shown_and_fitted(pipebench: CommandLine, runs: str, tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "rank0.json", card_trace([(PRODUCT, 0, 3e5), (ALL_REDUCE, 2e5, 2e5)], 5e5))
    named = layouts()[0].id
    done = pipebench("calibrate", runs, "--trace", f"{named}={trace}", "--force")
    assert done.code == 0, done.err
    assert f"traced {named}, rank 0: kernels 300 ms of 500 ms" in done.out
    assert "communication 200 ms, 100 ms of it exposed" in done.out
    told = json.loads(pipebench("calibrate", runs, "--trace", f"{named}={trace}", "--json").out)
    (traced,) = [each for each in told["runs"] if each["traced"]]
    assert (traced["id"], traced["measured_s"]) == (named, 0.5)
    assert traced["kernels_before_s"] < traced["kernels_after_s"] < 0.3
    wrong = pipebench("calibrate", runs, "--trace", f"nobody={trace}")
    assert wrong.code == 2
    assert "no run 'nobody'" in wrong.err
