"""The commands profile and execute, and a comparison with measured columns."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

from pipebench.bench import execution, score
from pipebench.formats.documents import read_document
from tests.cli.command_line import CommandLine

QUICK = "torch[device=cpu,iterations=1,least_s=0,warmup=0,verify=yes,timeout_s=100]"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else is taken to use the machine: other tests run beside these."""
    for module in (execution, score):
        monkeypatch.setattr(module, "disturbance", lambda *_: [])


@pytest.mark.usefixtures("alone")
def test_profile_plan_execute_and_show(pipebench: CommandLine, tmp_path: Path) -> None:
    profile, plan, trace = (str(tmp_path / name) for name in ("p.json", "plan.json", "t.json"))
    made = pipebench(
        "profile", "tiny-mmt[layers=1]", "--profiler", "torch[repeats=1]", "--micro-batches", "1,2", "-o", profile
    )
    assert made.code == 0, made.err
    assert "7 operators" in made.out
    assert not (tmp_path / "p.json.partial").exists()
    asked = ("--devices", "2", "--memory", "1GB", "--mini-batch", "4", "--micro-batch", "1")
    assert pipebench("plan", "uniform", "--profile", profile, *asked, "-o", plan).code == 0
    ran = pipebench("execute", plan, "--executor", QUICK, "-o", trace)
    assert ran.code == 0, ran.err
    assert "gradients equal those of a single process" in ran.out
    assert ran.out.index("simulated:") < ran.out.index("measured:")
    told = json.loads(pipebench("execute", plan, "--executor", QUICK, "--json").out)["memory"]
    assert [each["device"] for each in told] == [0, 1]
    assert all(each["simulated_bytes"] > 0 and each["measured_bytes"] > 0 for each in told)
    assert "gpu1: at most" in ran.out
    assert read_document(trace, "trace").origin == "measured"
    shown = pipebench("show", plan, "--trace", trace)
    assert shown.out.splitlines()[:8] == ran.out.splitlines()[:8]


MINE = """
import torch

def build(width=16):
    module = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 4))
    return module, lambda samples: {inputs}
"""


@pytest.mark.usefixtures("alone")
def test_a_function_in_a_file_of_the_users_folder(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE.replace("{inputs}", "{'input': torch.zeros(samples, width)}"))
    made = pipebench(
        "profile", "./mine.py:build[width=8]", "--profiler", "torch[repeats=1,least_s=0]", "-o", "p.json",
        "--micro-batches", "1",
    )  # fmt: skip
    assert made.code == 0, made.err
    asked = ("--devices", "2", "--memory", "1GB", "--mini-batch", "2", "--micro-batch", "1")
    assert pipebench("plan", "uniform", "--profile", "p.json", *asked, "-o", "plan.json").code == 0
    named = QUICK.replace("]", ",model=./mine.py:build]")
    for words in (("--executor", named), ("--executor", QUICK, "--trust")):
        ran = pipebench("execute", "plan.json", *words)
        assert ran.code == 0, ran.err
        assert "gradients equal those of a single process" in ran.out


def test_example_inputs_that_are_no_dict_are_refused(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE.replace("{inputs}", "(torch.zeros(samples, width),)"))
    done = pipebench("profile", "./mine.py:build", "--profiler", "torch", "-o", "p.json")
    assert done.code == 2
    assert "its example inputs are a tuple, not a dict (give each argument of forward by its name" in done.err


@pytest.mark.usefixtures("alone")
def test_compare_keeps_rows_whose_run_fails(pipebench: CommandLine) -> None:
    models = ("--models", "tiny-mmt[layers=1]", "--devices", "2", "--mini-batch", "4", "--planners", "uniform")
    models = (*models, "--regime", "sync")
    good = pipebench("compare", *models, "--executors", f"simulate,{QUICK}", "--json")
    row = json.loads(good.out)["rows"][0]
    assert row["measured_s"] > 0
    assert row["measured_error"] == pytest.approx((row["simulated_s"] - row["measured_s"]) / row["measured_s"])
    assert row["measured_memory_bytes"] > 0
    bad = pipebench("compare", *models, "--executors", "simulate,torch[device=cuda]", "--json")
    row = json.loads(bad.out)["rows"][0]
    assert (row["status"], row["measured_s"]) == ("ok", None)
    assert row["simulated_s"] > 0
    assert any("finds no CUDA device" in notice for notice in row["notices"])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("profile", "-o", "x.json"), "takes a model, or --links"),
        (("profile", "tiny-mmt", "--micro-batches", "0", "-o", "x.json"), "no micro-batch sizes"),
        (("profile", "--links", "2", "-o", "x.json"), "measures no links"),
        (
            ("profile", "tiny-mmt", "--profiler", "torch", "--nnodes", "2", "--rendezvous", "h:1", "-o", "x.json"),
            "nnodes is for --links",
        ),
        (("profile", "resnet50", "--nnodes", "2", "-o", "x.json"), "unknown option of 'analytic': 'nnodes'"),
        (
            ("profile", "tiny-mmt", "--profiler", "torch", "--device", "A100", "-o", "x.json"),
            "measures this machine",
        ),
        (("profile", "tiny-mmt", "--device", "abacus", "-o", "x.json"), "unknown device type"),
        (("execute", "no-such-plan.json"), "no-such-plan.json"),
    ],
)
def test_mistakes(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    made = pipebench(*words)
    assert made.code == 2
    assert reason in made.err
    assert "Traceback" not in made.err
