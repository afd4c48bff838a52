"""--recompute full and selective, as a user types them: plans, flags, and refusals of one line."""

import json
import re
from pathlib import Path

import pytest

from pipebench.formats.documents import read_document
from tests.cli.command_line import CommandLine
from tests.language_models import config

SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "intermediate_size": 1024,
    "max_position_embeddings": 128,
}
LANGUAGE = "llm[layers=4,hidden=256,heads=8,ffn=1024,vocab=5000,sequence=128]"
BERT = "bert[layers=2,hidden=64,heads=4,sequence=32]"
WHERE = ("-n", "4", "--mini-batch", "16", "--no-wait")


@pytest.mark.parametrize(
    ("word", "flags"),
    [
        ("full", "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1\n"),
        ("selective", "--recompute-granularity selective\n"),
    ],
)
def test_from_a_config_to_the_flags(pipebench: CommandLine, tmp_path: Path, word: str, flags: str) -> None:
    where = ("--config", config(tmp_path, **SMALL), "--cluster", "dgx-h100", *WHERE)
    path = tmp_path / "plan.json"
    degrees = ("--tp", "2", "--pp", "2", "--recompute", word)
    done = pipebench("plan", "layout", *where, *degrees, "--export", "megatron", "-o", str(path))
    assert done.code == 0, done.err
    assert flags in done.out
    assert done.out.count("--recompute-granularity") == 1
    plan = read_document(str(path), "plan").plan
    layers = [
        choice
        for stage in plan.stages
        for name, choice in zip(stage.operators, stage.choice, strict=True)
        if name.startswith("layers.")
    ]
    assert len(layers) == 8
    assert set(layers) == {"tp2-sp-recompute" if word == "full" else "tp2-sp-selective"}
    assert pipebench("validate", str(path)).code == 0
    exported = pipebench("export", str(path), "--to", "megatron")
    assert flags in exported.out


def test_planners_choose_or_say_why_not(pipebench: CommandLine) -> None:
    """BERT operator by operator: its layers are joined, and run again one by one."""
    asked = ("compare", "--planners", "uniform,gpipe-hybrid,rannc", "--models", BERT, "--regime", "sync", *WHERE)
    done = pipebench(*asked, "--recompute", "full", "--json")
    assert done.code == 5, done.err
    rows = {row["planner"]: row for row in json.loads(done.out)["rows"] if row["planner"] != "best"}
    assert rows["uniform"]["status"] == rows["gpipe-hybrid"]["status"] == "ok"
    assert rows["uniform"]["verdict"] == "valid"
    assert rows["rannc"]["status"] == "unsupported"
    assert "rannc recomputes whole stages or nothing, recompute=full is pinned" in rows["rannc"]["reason"]
    whole = {
        row["planner"]: row
        for row in json.loads(pipebench(*asked, "--recompute", "stage", "--json").out)["rows"]
        if row["planner"] != "best"
    }
    assert whole["rannc"]["status"] == "ok"


def test_what_cannot_recompute_by_layer_is_refused_in_a_line(pipebench: CommandLine, tmp_path: Path) -> None:
    """A profile without layers, one without attention, and one that was made before the pin."""
    asked = ("compare", "--planners", "uniform", *WHERE)
    path = str(tmp_path / "language.json")
    assert pipebench("profile", LANGUAGE, "--device", "A100-SXM4-40GB", "-o", path).code == 0
    flat = tmp_path / "flat.json"
    flat.write_text(re.sub(r'"layer": ?[0-9]+', '"layer": null', Path(path).read_text()))
    none = pipebench(*asked, "--profile", str(flat), "--cluster", "dgx-a100", "--recompute", "full")
    older = pipebench(*asked, "--profile", path, "--cluster", "dgx-a100", "--recompute", "selective")
    for done, said in (
        (none, "has no layers (pin stage)"),
        (older, "no alternative that runs the core of its attention again (profile a language model anew with"),
    ):
        assert done.code == 2, done.err
        assert said in done.err
        assert done.err.count("\n") == 1
        assert "Traceback" not in done.err
    assert pipebench("profile", LANGUAGE, "--device", "A100-SXM4-40GB", "--selective", "-o", path).code == 0
    newer = pipebench(*asked, "--profile", path, "--cluster", "dgx-a100", "--recompute", "selective", "--json")
    assert newer.code == 0, newer.err
    assert {row["status"] for row in json.loads(newer.out)["rows"]} == {"ok"}


def test_a_word_that_is_none(pipebench: CommandLine) -> None:
    done = pipebench("plan", "uniform", "--models", BERT, *WHERE, "--recompute", "layers")
    assert done.code == 2
    assert "'layers' is not one of its values (valid: full, none, selective, stage)" in done.err


@pytest.mark.parametrize(
    ("planner", "word", "tensor", "told"),
    [
        ("layout", "stage", "1", True),
        ("uniform", "stage", "2", True),
        ("uniform", "stage", "1", False),
        ("layout", "full", "1", False),
    ],
)
def test_a_plan_says_where_layers_run_again_in_place_of_stages(
    pipebench: CommandLine, tmp_path: Path, planner: str, word: str, tensor: str, told: bool
) -> None:
    """Planners whose layers can run again by themselves take `stage` for `full`."""
    path = tmp_path / "plan.json"
    where = ("--config", config(tmp_path, **SMALL), "--cluster", "dgx-h100", *WHERE, "--tp", tensor, "--pp", "2")
    done = pipebench("plan", planner, *where, "--recompute", word, "-o", str(path))
    assert done.code == 0, done.err
    assert ("recompute stage: what can run again by itself does" in " ".join(done.out.split())) == told
    whole = {stage.recompute for stage in read_document(str(path), "plan").plan.stages}
    assert whole == ({"none"} if told or word == "full" else {"stage"})
    if planner == "layout":
        assert "recomputed by layer" in done.out
