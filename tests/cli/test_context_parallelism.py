"""--cp, as a user types it: does a long sequence fit, what to type into frameworks, what is refused."""

import json
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine
from tests.language_models import config

TOKENS, LAYERS, HIDDEN, FFN, VOCAB = 131_072, 4, 4096, 14_336, 32_000
LLAMA = {
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": FFN,
    "max_position_embeddings": TOKENS,
}


def long(folder: Path, cp: int, *more: str) -> tuple[str, ...]:
    """Sixteen H100: four layers of Llama 8B, a sample of 128k tokens, degrees pinned by `more`."""
    return (
        *("--config", config(folder, **LLAMA), "--seq", str(TOKENS), "--cluster", "dgx-h100", "-n", "16"),
        *("--framework", "megatron", "--optimizer", "adam", "--optimizer-sharding", "zero1", "--cp", str(cp)),
        *("--recompute", "none", *more),
    )


def test_the_memory_of_a_long_sequence_by_hand(pipebench: CommandLine, tmp_path: Path) -> None:
    """Of 16 ranks 8 share a sequence: two replicas, a rank has 16k tokens; 16 ranks hold the same weights."""
    pins = ("--tp", "1", "--pp", "1", "--dp", "2", "--micro-batch-size", "1", "--mini-batch", "4")
    plan = str(tmp_path / "plan.json")
    done = pipebench("plan", "layout", *long(tmp_path, 8, *pins), "--json", "-o", plan)
    assert done.code == 0, done.err
    row = json.loads(done.out)
    layer = HIDDEN * (HIDDEN + 2 * 1024) + HIDDEN * HIDDEN + 3 * HIDDEN * FFN + 2 * HIDDEN
    weights = LAYERS * layer + 2 * VOCAB * HIDDEN + HIDDEN
    # A token of a layer: inputs of norms and products; queries, context, keys, values; the gated part; row sums.
    kept = 2 * (4 * HIDDEN + 2 * HIDDEN + 2 * 1024 + 3 * FFN) + 4 * 32
    saved = (
        TOKENS // 8 * (LAYERS * kept + 2 * HIDDEN + (2 * HIDDEN + 4 * VOCAB))
    )  # and last norm, head with logits
    assert max(row["peak_memory_bytes"].values()) == 6 * weights + 12 * weights // 16 + saved + 2**25
    assert (row["devices"], row["devices_used"], row["replicas"]) == (16, 16, [2])
    assert "8 ranks share out each sequence: a device of a plan is 8 GPUs" in done.err
    shown = pipebench("show", plan).out
    assert "16 GPUs of dgx-h100" in shown


def test_it_fits_with_and_not_without(pipebench: CommandLine, tmp_path: Path) -> None:
    """128k tokens of a layer take 131072 x 139 kB = 18.3 GB, of four and the head 92 GB; a device has 79.5."""
    pins = ("--tp", "1", "--pp", "1", "--micro-batch-size", "1", "--mini-batch", "16")
    status = {}
    for cp in (1, 2):
        done = pipebench("plan", "layout", *long(tmp_path, cp, "--dp", str(16 // cp), *pins), "--json")
        status[cp] = json.loads(done.out)["status"]
    assert status == {1: "infeasible", 2: "ok"}


def test_what_to_type_into_frameworks(pipebench: CommandLine, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    pins = ("--tp", "2", "--pp", "2", "--dp", "1", "--micro-batch-size", "1", "--mini-batch", "4")
    done = pipebench("plan", "layout", *long(tmp_path, 4, *pins), "-o", plan, "--export", "megatron")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    for flag in (
        "--context-parallel-size 4",
        "--cp-comm-type p2p",
        f"--seq-length {TOKENS}",
        f"--max-position-embeddings {TOKENS}",
        "--use-distributed-optimizer",
        "--overlap-grad-reduce",
        "--tensor-model-parallel-size 2",
        "--pipeline-model-parallel-size 2",
    ):
        assert flag in lines
    assert "# 16 GPUs: Megatron-LM computes DP = 16 / (TP 2 x PP 2 x CP 4) = 1" in lines
    assert "nine of ten runs" not in done.out  # no measured run was like it
    titan = tmp_path / "titan.py"
    exported = pipebench("export", plan, "--to", "torchtitan", "-o", str(titan))
    assert exported.code == 0, exported.err
    text = titan.read_text()
    assert "    context_parallel_degree=4,\n" in text
    assert f"max_context_length={TOKENS}" in text
    assert "dp_shard x cp 4 x tp 2 x pp 2 = WORLD_SIZE, so dp_shard is 1" in text
    refused = pipebench("export", plan, "--to", "deepspeed", "-o", str(tmp_path / "config.py"))
    assert "4 ranks share out each sequence" in refused.err
    certificate = str(tmp_path / "certificate.json")
    assert pipebench("certify", plan, "-o", certificate).code == 0
    assert pipebench("certify", "--check", certificate).code == 0
    whole = str(tmp_path / "whole.json")
    none = (*long(tmp_path, 4, *pins), "--optimizer-sharding", "none")
    assert pipebench("plan", "layout", *none, "-o", whole).code == 0
    said = pipebench("export", whole, "--to", "torchtitan", "-o", str(titan))
    assert "torchtitan takes these ranks into its FSDP" in said.err


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--cp", "3"), "--cp 3: a rank has 2 of 6 chunks, which do not divide the sequence of 131072 tokens"),
        (("--cp", "32"), "--cp 32: it does not divide the 16 devices"),
        (("--cp", "8", "--tp", "4"), "--tp 4 x --cp 8 = 32 devices, there are 16"),
        (("--cp", "8", "--tp", "4"), "the nearest valid: --cp 1, 2, 4"),
        (("--framework", "megatron-v2"), "context parallelism under megatron-v2 is not priced"),
    ],
)
def test_a_wrong_degree_names_the_nearest(
    pipebench: CommandLine, tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    done = pipebench("plan", "layout", *long(tmp_path, 2, *options))
    assert done.code == 2
    assert reason in done.err


def test_experts_besides(pipebench: CommandLine, tmp_path: Path) -> None:
    """Four ranks share out experts, two each sequence; what no number of ranks goes with is said."""
    keys = {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2, "num_hidden_layers": 2}
    options = (
        *("--config", config(tmp_path, **LLAMA | keys), "--seq", "8192", "--cluster", "dgx-h100", "-n", "8"),
        *("--framework", "megatron", "--tp", "1", "--dp", "4", "--cp", "2", "--mini-batch", "8"),
    )
    done = pipebench("plan", "layout", *options, "--ep", "4", "--export", "megatron")
    assert done.code == 0, done.err
    assert {"--expert-model-parallel-size 4", "--context-parallel-size 2"} <= {*done.out.splitlines()}
    refused = pipebench("plan", "layout", *options, "--dp", "2", "--ep", "8")
    assert "--tp 1 x --dp 2 x --cp 2 make 4 ranks of a stage, which is no multiple of it" in refused.err


def test_a_profile_has_whole_sequences(pipebench: CommandLine) -> None:
    done = pipebench("plan", "uniform", "--profile", "densenet121", "--cp", "2")
    assert done.code == 2
    assert "is of whole sequences" in done.err


def test_planners_side_by_side(pipebench: CommandLine, tmp_path: Path) -> None:
    done = pipebench(
        "compare", "--config", config(tmp_path, **LLAMA | {"num_hidden_layers": 2}), "--json",
        "--planners", "layout,madpipe,data-parallel", "--seq", "32768", "--cluster", "dgx-h100", "-n", "8",
        "--mini-batch", "4", "--cp", "2", "--framework", "megatron", "--out", str(tmp_path / "store"),
    )  # fmt: skip
    rows = {row["planner"]: row for row in json.loads(done.out)["rows"]}
    assert rows["madpipe"]["status"] == "unsupported"
    assert "madpipe does not plan stages whose ranks share out sequences" in rows["madpipe"]["reason"]
    for name in ("layout", "data-parallel"):
        assert rows[name]["status"] == "ok", rows[name]["reason"]
        assert rows[name]["gap"] >= 0
        assert rows[name]["devices"] == 8
