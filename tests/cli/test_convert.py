"""pipebench convert, as a user runs it."""

import json
from pathlib import Path

import pytest

from pipebench.cli.main import run
from pipebench.formats.profiles.files import read_profile
from tests.formats.graph_txt import DIAMOND
from tests.formats.test_foreign_errors import PIPER


def test_graph_txt_to_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "net.txt"
    source.write_text(DIAMOND)
    setting = ["--devices", "4", "--memory", "1GB", "--bandwidth", "1GB/s", "--mini-batch", "8"]
    for end in (".json", ".csv", ".layers.json", ".piper.json", ".tarnawski.json", ".txt"):
        target = tmp_path / "out" / f"net{end}"
        assert run(["convert", str(source), "-o", str(target), *setting]) == 0
        back = read_profile(str(target), {"batch": "2"} if end == ".txt" else {})
        times = [c.forward_s[0] + c.backward_s[0] for c in back.costs[0].operators]
        assert sum(times) == pytest.approx(20.25e-3)
    told = capsys.readouterr().err
    assert "read: profiled with a mini-batch of 2 samples" in told
    assert "not carried: how times split into forward and backward" in told


def test_options_of_the_source_and_what_was_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "net.json"
    source.write_text(json.dumps(PIPER))
    assert run(["convert", f"{source}[units=ms]", "-o", str(tmp_path / "a"), "--to", "layers-json"]) == 0
    assert "read: times are read as ms" in capsys.readouterr().err
    assert json.loads((tmp_path / "a").read_text())["layers"][0]["forward_s"] == pytest.approx(1e-3)


def test_a_shipped_profile(tmp_path: Path) -> None:
    target = tmp_path / "r.csv"
    assert run(["convert", "resnet50", "--micro-batch", "8", "-o", str(target)]) == 0
    assert read_profile(str(target)).costs[0].micro_batches == (8,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt", "-o", "a.csv"], "there is no file 'missing.txt'"),
        (["mmt", "-o", "a.csv"], "say --micro-batch"),
        (["mmt", "-o", "a.csv", "--micro-batch", "3"], "no micro-batch of 3 was profiled"),
        (["mmt", "-o", "a.csv", "--device", "A100"], "no costs for device type 'A100'"),
        (["mmt", "-o", "a.xyz"], "does not say which format to write"),
        (["mmt", "-o", "a.csv", "--to", "cvs"], "unknown format to write 'cvs'"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["convert", *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
