"""--ep, as a user types it: does it fit, what to type into Megatron-LM, what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import CommandLine
from tests.published_configs import PUBLISHED
from tests.published_experts import EXPERT_MODELS

TOKENS = 4096
QWEN, MIXTRAL, OLMOE = "Qwen/Qwen3-30B-A3B", "mistralai/Mixtral-8x7B-v0.1", "allenai/OLMoE-1B-7B-0924"
GPT_OSS, DEEPSEEK_LITE = "openai/gpt-oss-20b", "deepseek-ai/DeepSeek-V2-Lite"
QWEN_235B: dict[str, Any] = {
    "model_type": "qwen3_moe",
    "hidden_size": 4096,
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": False,
}


def written(folder: Path, name: str) -> str:
    """The path of a config.json of a published model."""
    (found,) = (each for each in (*PUBLISHED, *EXPERT_MODELS) if each.name == name)
    return of_keys(folder, {"model_type": found.model_type} | found.keys)


def of_keys(folder: Path, keys: dict[str, Any]) -> str:
    path = folder / "config.json"
    path.write_text(json.dumps({"torch_dtype": "bfloat16"} | keys))
    return str(path)


def pinned(devices: int, ep: int, dp: int, *more: str) -> tuple[str, ...]:
    """Replicas alone, one micro-batch of one sample each."""
    return (
        *("--seq", str(TOKENS), "--cluster", "dgx-h100", "-n", str(devices), "--framework", "megatron"),
        *("--ep", str(ep), "--tp", "1", "--pp", "1", "--dp", str(dp), "--micro-batch-size", "1"),
        *("--mini-batch", str(dp), "--recompute", "none", *more),
    )


def state_bytes(alike: int, experts: int, replicas: int, alike_experts: int) -> int:
    """bf16 weights and fp32 gradients; master copy and Adam's state, 12 bytes, shared out among those alike."""
    return 6 * alike + 12 * alike // replicas + 6 * experts + 12 * experts // alike_experts


def test_the_memory_of_qwen3_30b_by_hand(pipebench: CommandLine, tmp_path: Path) -> None:
    """16 H100, 8 ranks share out 128 experts: each expert is in two places, all else in sixteen."""
    plan = str(tmp_path / "plan.json")
    done = pipebench(
        "plan", "layout", "--config", written(tmp_path, QWEN), "--json", "-o", plan,
        *pinned(16, 8, 16, "--optimizer-sharding", "zero1"),
    )  # fmt: skip
    assert done.code == 0, done.err
    row = json.loads(done.out)
    attention = 2048 * (4096 + 2 * 512) + 4096 * 2048 + 2 * 128
    layer = attention + 2048 * 128 + 2 * 2048  # the router, two norms
    edges = 2 * 151936 * 2048 + 2048
    experts = 48 * (128 // 8) * 3 * 2048 * 768
    held = state_bytes(48 * layer + edges, experts, 16, 2)
    # A token: both norms' inputs and what attention reads; the router's input; 8 copies that the experts read;
    # queries, context, keys and values; queries and keys before their norms; the experts' inner activations.
    kept = 2 * (3 * 2048 + 2048 + 8 * 2048 + 2 * 4096 + 2 * 512 + 4096 + 512 + 8 * 3 * 768) + 4 * 32
    saved = TOKENS * (48 * kept + 2 * 2048 + (2 * 2048 + 4 * 151936))  # layers, last norm, head with its logits
    assert max(row["peak_memory_bytes"].values()) == held + saved + 2**25
    assert "8 ranks share out the 128 experts of a layer" in done.err


def gpt_oss() -> tuple[int, int, int, int]:
    """Elements alike on all of 8 ranks, of experts on one; bytes kept of a token; entries of the vocabulary."""
    h, queries, keys, vocab, layers = 2880, 4096, 512, 201_088, 24
    attention = h * (queries + 2 * keys) + queries + 2 * keys + queries * h + h + 64  # biases, and a sink a head
    alike = layers * (attention + h * 32 + 32 + 2 * h) + 2 * vocab * h + h
    experts = layers * (32 // 8) * (3 * h * h + 2 * h + h)
    kept = 2 * (3 * h + h + 4 * h + 2 * queries + 2 * keys + 4 * 3 * h) + 4 * 64
    return alike, experts, layers * kept + 2 * h + 2 * h, vocab


def deepseek_lite() -> tuple[int, int, int, int]:
    """The first layer is dense; an expert of 2,816 features is on each rank."""
    h, heads, low, vocab, layers, ffn, dense, shared = 2048, 16, 512, 102_400, 27, 1408, 10944, 2816
    attention = h * heads * 192 + h * (low + 64) + low + low * heads * (128 + 128) + heads * 128 * h
    alike = layers * (attention + 2 * h) + 3 * h * dense + (layers - 1) * (h * 64 + 3 * h * shared)
    experts = (layers - 1) * (64 // 8) * 3 * h * ffn
    states = 2 * low + heads * (192 + 192 + 128 + 128)
    first = 2 * (4 * h + states + 3 * dense) + 4 * heads
    kept = 2 * (3 * h + h + 6 * h + states + 6 * 3 * ffn + 3 * shared) + 4 * heads
    return alike + 2 * vocab * h + h, experts, first + (layers - 1) * kept + 2 * h + 2 * h, vocab


@pytest.mark.parametrize(
    ("name", "counted", "note"),
    [
        (GPT_OSS, gpt_oss, "tokens of 12 of 24 layers see the last 128 tokens"),
        (DEEPSEEK_LITE, deepseek_lite, "8 ranks share out the 64 experts of a layer"),
    ],
)
def test_the_memory_of_layers_that_differ_by_hand(
    pipebench: CommandLine, tmp_path: Path, name: str, counted: Callable[[], tuple[int, ...]], note: str
) -> None:
    done = pipebench(
        "plan", "layout", "--config", written(tmp_path, name), "--json", "-o", str(tmp_path / "plan.json"),
        *pinned(16, 8, 16, "--optimizer-sharding", "zero1"),
    )  # fmt: skip
    assert done.code == 0, done.err
    alike, experts, kept, vocab = counted()
    held = state_bytes(alike, experts, 16, 2) + TOKENS * (kept + 4 * vocab) + 2**25
    assert max(json.loads(done.out)["peak_memory_bytes"].values()) == held
    assert note in done.err


@pytest.mark.parametrize(
    ("name", "dp", "ep", "fits"),
    [
        # 46.7 G elements, experts 45.1: 6 bytes of all and 12 of all: by no means on 8 devices, split 8 ways
        (MIXTRAL, 8, 8, False),
        (OLMOE, 8, 8, True),  # 6.9 G: 18 bytes of 0.8 G experts and 7.5 of 0.5 G others are 18 GB
        (QWEN, 8, 8, False),  # 18 bytes of 3.6 G and 7.5 of 1.5 G are 77 GB, of 79.5, before any activation
        pytest.param(QWEN, 16, 16, True, marks=pytest.mark.nightly),
        pytest.param(QWEN, 16, 8, True, marks=pytest.mark.nightly),
    ],
)
def test_whether_it_fits(pipebench: CommandLine, tmp_path: Path, name: str, dp: int, ep: int, fits: bool) -> None:
    done = pipebench(
        "plan", "layout", "--config", written(tmp_path, name), "--json", "-o", str(tmp_path / "plan.json"),
        *pinned(dp, ep, dp, "--optimizer-sharding", "zero1"),
    )  # fmt: skip
    row = json.loads(done.out)
    assert row["status"] == ("ok" if fits else "infeasible"), row["reason"]
    assert fits or "nothing fits into" in row["reason"]


def test_qwen3_235b_in_a_pipeline(pipebench: CommandLine, tmp_path: Path) -> None:
    """256 H100 in 8 stages of 32 ranks, which share out 128 experts: a stage of 12 layers has 4 of each."""
    plan = str(tmp_path / "plan.json")
    done = pipebench(
        "plan", "uniform", "--config", of_keys(tmp_path, QWEN_235B), "--json", "-o", plan,
        *("--seq", str(TOKENS), "--cluster", "dgx-h100", "-n", "256", "--framework", "megatron"),
        *("--ep", "32", "--tp", "1", "--pp", "8", "--dp", "32", "--micro-batch-size", "1"),
        *("--mini-batch", "256", "--recompute", "full", "--optimizer-sharding", "zero1"),
    )  # fmt: skip
    row = json.loads(done.out)
    layer = 4096 * (8192 + 2 * 512) + 8192 * 4096 + 2 * 128 + 4096 * 128 + 2 * 4096
    experts = 12 * 4 * 3 * 4096 * 1536
    state = state_bytes(12 * layer, experts, 32, 1)
    assert 20e9 < state < 24e9
    assert done.code == 0, done.err
    # Of a stage of 12 layers; besides the inputs of its layers in flight and one layer's activations.
    assert state < row["peak_memory_bytes"]["96"] < 1.25 * state


def test_what_to_type_into_frameworks(pipebench: CommandLine, tmp_path: Path) -> None:
    plan = str(tmp_path / "plan.json")
    options = ("--config", written(tmp_path, OLMOE), "-o", plan)
    done = pipebench("plan", "layout", *options, *pinned(8, 8, 8, "--export", "megatron"))
    assert done.code == 0, done.err
    flags = done.out.splitlines()
    for flag in (
        "--num-experts 64 --moe-router-topk 8",
        "--expert-model-parallel-size 8",
        "--expert-tensor-parallel-size 1",
        "--moe-grouped-gemm",
        "--moe-token-dispatcher-type alltoall",
    ):
        assert flag in flags
    assert "(nine of ten runs: 79.8 ms to 235 ms) for 8 samples" in done.out  # of 124 ms, as runs of experts say
    refused = pipebench("export", plan, "--to", "deepspeed", "-o", str(tmp_path / "config.py"))
    assert refused.code != 0
    assert "8 ranks share out the experts of each layer" in refused.err
    whole = pipebench("export", plan, "--to", "torchtitan", "-o", str(tmp_path / "titan.py"))
    assert "torchtitan takes these ranks from those of its FSDP" in whole.err
    assert pipebench("validate", plan).code == 0
    certificate = str(tmp_path / "certificate.json")
    assert pipebench("certify", plan, "-o", certificate).code == 0
    assert pipebench("certify", "--check", certificate).code == 0


@pytest.mark.parametrize("planner", ["layout", "best"])
def test_what_a_framework_can_never_express_is_refused_before_the_search(
    pipebench: CommandLine, tmp_path: Path, planner: str
) -> None:
    plan = tmp_path / "plan.json"
    options = ("--config", written(tmp_path, OLMOE), "-o", str(plan))
    done = pipebench("plan", planner, *options, *pinned(8, 8, 8, "--export", "deepspeed"))
    assert done.code == 1
    assert "8 ranks share out the experts of each layer" in done.err
    assert "plan with --ep 1" in done.err
    assert not plan.exists()


def test_torchtitan_is_told_the_degree(pipebench: CommandLine, tmp_path: Path) -> None:
    """Its ranks that share out experts are of those that share out weights."""
    plan, titan = str(tmp_path / "plan.json"), tmp_path / "titan.py"
    options = ("--config", written(tmp_path, OLMOE), "-o", plan, "--optimizer-sharding", "zero3")
    assert pipebench("plan", "layout", *options, *pinned(8, 4, 8)).code == 0
    done = pipebench("export", plan, "--to", "torchtitan", "-o", str(titan))
    assert done.code == 0, done.err
    assert "    expert_parallel_degree=4,\n" in titan.read_text()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (pinned(8, 3, 8), "--ep 3: it does not divide the 64 experts of a layer of llm"),
        (pinned(8, 16, 8), "--tp 1 x --dp 8 make 8 ranks of a stage, which is no multiple of it"),
        (pinned(8, 16, 8), "the nearest valid: --ep 2, 4, 8"),
    ],
)
def test_a_wrong_degree_names_the_nearest(
    pipebench: CommandLine, tmp_path: Path, options: tuple[str, ...], reason: str
) -> None:
    done = pipebench("plan", "layout", "--config", written(tmp_path, OLMOE), *options)
    assert done.code == 2
    assert reason in done.err


def test_planners_that_do_not_know_experts_say_so(pipebench: CommandLine, tmp_path: Path) -> None:
    done = pipebench(
        "compare", "--config", written(tmp_path, OLMOE), "--json",
        "--planners", "graphpipe,pipedream,data-parallel",
        *("--seq", "512", "--cluster", "dgx-h100", "-n", "8", "--mini-batch", "16", "--ep", "8"),
        *("--framework", "megatron", "--recompute", "none", "--out", str(tmp_path / "store")),
    )  # fmt: skip
    rows = {row["planner"]: row for row in json.loads(done.out)["rows"]}
    for name in ("graphpipe", "pipedream"):
        assert rows[name]["status"] == "unsupported"
        assert f"{name} does not plan stages whose ranks share out experts" in rows[name]["reason"]
    assert rows["data-parallel"]["status"] == "ok"
    assert rows["data-parallel"]["gap"] >= 0
