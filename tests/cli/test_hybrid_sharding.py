"""--sharding-ranks, as a user types it: who plans with groups, what it costs, what is refused."""

import json
from pathlib import Path

from tests.cli.command_line import CommandLine
from tests.language_models import config

LLAMA = {"hidden_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 16, "num_key_value_heads": 4}
LLAMA |= {"intermediate_size": 4096, "max_position_embeddings": 2048}


def words(folder: Path, *more: str) -> tuple[str, ...]:
    """Sixteen H100 in two nodes, one stage, recomputed layers, weights shared out as torchtitan does."""
    return (
        *("--config", config(folder, **LLAMA), "--cluster", "dgx-h100", "-n", "16", "--mini-batch", "64"),
        *("--framework", "torchtitan", "--optimizer-sharding", "zero3", *more),
    )


def test_groups_of_a_node_take_more_memory_and_no_interval(pipebench: CommandLine, tmp_path: Path) -> None:
    pins = ("--tp", "1", "--pp", "1", "--micro-batch-size", "1", "--recompute", "full")
    rows, plans = {}, {}
    for ranks in ("8", "16"):
        plans[ranks] = str(tmp_path / f"{ranks}.json")
        more = (*pins, "--sharding-ranks", ranks, "-o", plans[ranks], "--json")
        done = pipebench("plan", "layout", *words(tmp_path, *more))
        assert done.code == 0, done.err
        rows[ranks] = json.loads(done.out)
    held = {ranks: max(row["peak_memory_bytes"].values()) for ranks, row in rows.items()}
    assert held["8"] > held["16"]
    assert "nine of ten runs" not in pipebench("show", plans["8"]).out
    titan = tmp_path / "titan.py"
    assert pipebench("export", plans["8"], "--to", "torchtitan", "-o", str(titan)).code == 0
    assert "data_parallel_replicate_degree=2,\n    data_parallel_shard_degree=8,\n" in titan.read_text()
    certificate = str(tmp_path / "certificate.json")
    assert pipebench("certify", plans["8"], "-o", certificate).code == 0
    assert pipebench("certify", "--check", certificate).code == 0


def test_who_does_not_know_groups_refuses(pipebench: CommandLine, tmp_path: Path) -> None:
    more = ("--sharding-ranks", "8", "--json", "--planners", "pase,madpipe,data-parallel")
    done = pipebench("compare", *words(tmp_path, *more))
    rows = {row["planner"]: row for row in json.loads(done.out)["rows"] if row["regime"] == "sync"}
    assert "sharding_groups" in rows["pase"]["reason"]
    assert rows["data-parallel"]["status"] == "ok"
    assert "sharding_groups" not in (rows["madpipe"]["reason"] or "")


def test_what_is_shared_out_is_said(pipebench: CommandLine, tmp_path: Path) -> None:
    more = ("--sharding-ranks", "8", "--optimizer-sharding", "none")
    said = pipebench("plan", "layout", *words(tmp_path, *more))
    assert said.code == 2
    assert (
        "nothing is shared out: optimizer_sharding is none (say --optimizer-sharding zero1 or zero3)" in said.err
    )
