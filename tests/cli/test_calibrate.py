"""profile --profiler analytic[calibrate=…]: on the measured device, with the fit and its errors."""

import json
from pathlib import Path

import pytest

from pipebench.formats.documents import read_document
from tests.cli.command_line import CommandLine

MEASURED = Path(__file__).parents[2] / "profiles" / "tiny-mmt-cpu.json"


def test_a_measured_profile_prices_sizes_that_were_not_measured(pipebench: CommandLine, tmp_path: Path) -> None:
    out = str(tmp_path / "p.json")
    made = pipebench(
        "profile",
        "tiny-mmt",
        "--profiler",
        f"analytic[calibrate={MEASURED}]",
        "--micro-batches",
        "3,64",
        "-o",
        out,
    )
    assert made.code == 0, made.err
    assert "whole model on cpu" in made.out
    assert f"rates fitted to {MEASURED} on cpu" in made.out
    assert "held out: predicted without the micro-batch" in made.out
    assert pipebench("show", out).out == made.out
    fit = read_document(out, "profile").provenance.calibration
    assert {each.kind for each in fit.fits} == {"", "attention", "linear", "concat"}
    assert all(abs(error) < 0.25 for error in fit.sums.values())
    told = json.loads(pipebench("show", out, "--json").out)
    assert list(told["provenance"]["calibration"]["profiles"]) == [str(MEASURED)]


@pytest.mark.parametrize(
    ("options", "more", "reason"),
    [
        ("calibrate=nothing.json", (), "cannot read 'nothing.json'"),
        (f"calibrate={MEASURED}", ("--device", "A100-SXM4-80GB"), "was measured on cpu, not on 'A100-SXM4-80GB'"),
        (f"calibrate={MEASURED}", ("--precision", "bf16"), "was measured in fp32, not bf16"),
        (f"calibrat={MEASURED}", (), "did you mean 'calibrate'"),
    ],
)
def test_mistakes(
    pipebench: CommandLine, tmp_path: Path, options: str, more: tuple[str, ...], reason: str
) -> None:
    asked = ("--profiler", f"analytic[{options}]", *more)
    made = pipebench("profile", "tiny-mmt", *asked, "-o", str(tmp_path / "p.json"))
    assert made.code == 2
    assert reason in made.err
    assert "Traceback" not in made.err


def test_a_model_with_kinds_that_were_not_measured_says_so(pipebench: CommandLine, tmp_path: Path) -> None:
    out = str(tmp_path / "p.json")
    asked = ("--profiler", f"analytic[calibrate={MEASURED}]", "--micro-batches", "1", "-o", out)
    made = pipebench("profile", "resnet50[image_size=64]", *asked)
    assert made.code == 0, made.err
    assert "batch_norm, conv2d, max_pool" in made.err.replace("\n", " ")
