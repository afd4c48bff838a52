"""What blocks say of a model's layers."""

from typing import Any

import pytest

from pipebench.domain.problem import OptimizerSharding, Pins
from pipebench.formats.frameworks import megatron
from pipebench.formats.frameworks.arrangement import Arrangement, arrange
from pipebench.formats.frameworks.megatron_model import CLAMPED_GATE
from pipebench.formats.frameworks.requirements import CannotExpress
from pipebench.formats.frameworks.targets import TARGETS
from tests.language_models import TINY, planned, problem

SIZES = ("layers", "size", "parallel", "batch", "seq", "layout", "bf16", "heads", "accumulate", "grad")
OWN = "no flag says this of the model, its layer specification is yours: "
DRY = "--hidden-dropout 0.0 --attention-dropout 0.0"
ROPE = [DRY, "--max-position-embeddings 128", "--position-embedding-type rope"]
UNTIED = "--untie-embeddings-and-output-weights"


def arranged(**options: Any) -> Arrangement:
    pins = Pins(tensor_parallel=1, pipeline=2, data_parallel=1, virtual_stages=1, micro_batch=1, recompute="none")
    made = problem(devices=2, mini_batch=8, pins=pins, **TINY | options)
    return arrange(made, planned(made))


def architecture_flags(made: Arrangement) -> list[str]:
    lines = TARGETS["megatron"].write(made, "").splitlines()
    return [line for line in lines if line == UNTIED or not any(word in line.split()[0] for word in SIZES)]


def unsaid(made: Arrangement) -> list[str]:
    return [line.removeprefix(OWN) for line in megatron.comments(made) if line.startswith(OWN)]


@pytest.mark.parametrize(
    ("options", "flags", "own"),
    [
        ({}, ["--swiglu", "--normalization RMSNorm", "--disable-bias-linear", *ROPE, UNTIED], []),
        (
            {"qkv_bias": True, "tied": True},
            ["--swiglu", "--normalization RMSNorm", "--disable-bias-linear", "--add-qkv-bias", *ROPE],
            [],
        ),
        (
            {"head_norm": True, "head": 64, "kv_heads": 2},
            [
                "--group-query-attention --num-query-groups 2",
                "--kv-channels 64",
                "--swiglu",
                "--normalization RMSNorm",
                "--qk-layernorm",
                "--disable-bias-linear",
                *ROPE,
                UNTIED,
            ],
            [],
        ),
        (
            {"qkv_bias": True, "out_bias": True, "ffn_bias": True, "rotary_percent": 50},
            ["--swiglu", "--normalization RMSNorm", *ROPE, "--rotary-percent 0.5", UNTIED],
            [],
        ),
        (
            {"qkv_bias": True, "out_bias": True},
            ["--swiglu", "--normalization RMSNorm", *ROPE, UNTIED],
            ["biases of some products"],
        ),
        (
            {"norms": 4, "activation": "gelu", "tied": True},
            ["--swiglu", "--normalization RMSNorm", "--disable-bias-linear", *ROPE],
            [
                "results of attention and feed-forward part are normed too",
                "the feed-forward part is gated by gelu (--swiglu has its widths and its work)",
            ],
        ),
        (
            {"architecture": "gpt2", "tied": True, "positions": 256},
            [DRY, "--max-position-embeddings 256"],
            [],
        ),
        (
            {"architecture": "gpt2", "tied": True, "positions": 256, "dropout": True},
            ["--max-position-embeddings 256"],
            [],
        ),
        (
            {"architecture": "gptj", "norms": 1, "parallel": True, "ffn_bias": True, "head_bias": True},
            [*ROPE, UNTIED],
            ["attention and feed-forward part read one input", "a bias of the head", "biases of some products"],
        ),
        (
            {"architecture": "mpt", "alibi": True, "tied": True},
            ["--disable-bias-linear", *ROPE[:-1], "--position-embedding-type none"],
            ["norms subtract the mean and do not shift", "ALiBi"],
        ),
        (
            {"architecture": "bloom", "alibi": True, "tied": True, "embedding_norm": True},
            [*ROPE[:-1], "--position-embedding-type none"],
            ["ALiBi", "a norm behind the embedding"],
        ),
        (
            {"architecture": "starcoder2", "activation": "squared_relu", "tied": True},
            ["--squared-relu", "--disable-bias-linear", *ROPE],
            [],
        ),
        (
            {"architecture": "olmo", "tied": True},
            ["--swiglu", "--disable-bias-linear", *ROPE],
            ["norms have no weights"],
        ),
        (
            {"architecture": "mixtral", "experts": 4, "active": 2, "head_norm": True, "wide_head_norm": True},
            [
                "--num-experts 4 --moe-router-topk 2",
                "--swiglu",
                "--normalization RMSNorm",
                "--qk-layernorm",
                "--disable-bias-linear",
                *ROPE,
                UNTIED,
            ],
            ["norms of queries and keys have weights of all heads"],
        ),
        (
            {"architecture": "mixtral", "experts": 4, "active": 2, "sinks": True},
            [
                "--softmax-type learnable",
                "--num-experts 4 --moe-router-topk 2",
                "--swiglu",
                "--normalization RMSNorm",
                "--disable-bias-linear",
                *ROPE,
                UNTIED,
            ],
            [CLAMPED_GATE],
        ),
    ],
)
def test_megatron_is_told_of_the_layers(options: dict[str, Any], flags: list[str], own: list[str]) -> None:
    made = arranged(**options)
    assert architecture_flags(made) == flags
    assert unsaid(made) == own


ROUTED: dict[str, Any] = {"architecture": "mixtral", "experts": 4, "active": 2}
EXPERTS = "--num-experts 4 --moe-router-topk 2"
LATENT: dict[str, Any] = {"head": 48, "key_rank": 24, "rotated": 16, "value_head": 40}


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ({"window": 32}, ["--window-size 31,0"]),
        ({"window": 32, "windowed": "w3f"}, ["--window-size 31,0 --window-attn-skip-freq 4"]),
        ({"window": 32, "windowed": "fw"}, ["--window-size 31,0 --window-attn-skip-freq '([0]*1+[1]*1)*4'"]),
        (
            {"window": 32, "windowed": "f6w2", "sinks": True},
            ["--window-size 31,0 --window-attn-skip-freq '[0]*6+[1]*2'", "--softmax-type learnable"],
        ),
        (
            {"window": 32, "windowed": "fww"},
            ["--window-size 31,0 --window-attn-skip-freq '[0]*1+[1]*2+[0]*1+[1]*2+[0]*1+[1]*1'"],
        ),
        (ROUTED | {"ffn_bias": True, "router_bias": True}, [EXPERTS]),
        (
            ROUTED | {"routed": "d3e5", "dense_ffn": 2048, "shared_ffn": 512},
            [
                EXPERTS,
                "--moe-ffn-hidden-size 1024 --moe-layer-freq '[0]*3+[1]*5'",
                "--moe-shared-expert-intermediate-size 512",
            ],
        ),
        (
            ROUTED | {"routed": "de", "shared_ffn": 512, "shared_gate": True},
            [
                EXPERTS,
                "--moe-ffn-hidden-size 1024 --moe-layer-freq '([0]*1+[1]*1)*4'",
                "--moe-shared-expert-intermediate-size 512 --moe-shared-expert-gate",
            ],
        ),
        (
            LATENT | {"query_rank": 64},
            [
                "--multi-latent-attention",
                "--q-lora-rank 64 --kv-lora-rank 24",
                "--qk-head-dim 32 --qk-pos-emb-head-dim 16 --v-head-dim 40",
            ],
        ),
        (
            LATENT,
            [
                "--multi-latent-attention",
                "--kv-lora-rank 24",
                "--qk-head-dim 32 --qk-pos-emb-head-dim 16 --v-head-dim 40",
            ],
        ),
    ],
)
def test_megatron_is_told_of_layers_that_differ(options: dict[str, Any], flags: list[str]) -> None:
    """Patterns have an entry for each layer, a 1 where there is a window or experts (`moe_freq_type`)."""
    made = arranged(**options)
    lines = TARGETS["megatron"].write(made, "").splitlines()
    plain = TARGETS["megatron"].write(arranged(), "").splitlines()
    usual = ("--kv-channels", "--qk-layernorm", "--ffn-hidden-size", "--pipeline-model-parallel-layout")
    assert [line for line in lines if line not in plain and not line.startswith(usual)] == flags
    assert ("--qk-layernorm" in lines) == ("key_rank" in options)
    assert f"--ffn-hidden-size {options.get('dense_ffn', 1024)}" in lines
    assert unsaid(made) == (["biases of some products"] if options.get("ffn_bias") else [])


def test_what_megatron_has_no_flag_for() -> None:
    assert unsaid(arranged(chunk=32)) == ["tokens see their part of the sequence"]
    assert unsaid(arranged(**ROUTED, router_bias=True)) == ["a bias of the router"]


def test_megatron_splits_no_experts_with_biases() -> None:
    with pytest.raises(CannotExpress, match="experts with biases that tensor parallelism splits") as caught:
        TARGETS["megatron"].write(shared(1, 2, 4, ffn_bias=True), "")
    assert caught.value.hint == "plan with --ep, which keeps experts whole, or --tp 1"
    assert "--expert-tensor-parallel-size 1" in TARGETS["megatron"].write(shared(4, 2, 4, ffn_bias=True), "")


def shared(
    ranks: int, tensor: int, data: int, sharding: OptimizerSharding = "zero1", **options: Any
) -> Arrangement:
    """Stages of so many replicas of so many ranks; some of these share out the experts."""
    pins = Pins(tensor_parallel=tensor, pipeline=2, data_parallel=data, virtual_stages=1, recompute="none")
    made = problem(2 * tensor * data, 8, pins, sharding, expert_parallel=ranks, **TINY | ROUTED | options)
    return arrange(made, planned(made))


def test_megatron_is_told_which_ranks_share_out_experts() -> None:
    lines = TARGETS["megatron"].write(shared(4, 2, 4), "").splitlines()
    at = lines.index("--expert-model-parallel-size 4")
    assert lines[at + 1 : at + 4] == [
        "--expert-tensor-parallel-size 1",
        "--moe-grouped-gemm",
        "--moe-token-dispatcher-type alltoall",
    ]
    assert "--sequence-parallel" in lines
    assert not any("expert-model" in line for line in TARGETS["megatron"].write(shared(1, 2, 4), "").splitlines())


def test_torchtitan_takes_the_ranks_from_those_that_share_out_weights() -> None:
    assert "    expert_parallel_degree=4,\n" in TARGETS["torchtitan"].write(shared(4, 2, 4), "order.csv")
    assert "    expert_parallel_degree=2,\n" in TARGETS["torchtitan"].write(shared(2, 2, 4, "none"), "order.csv")
    assert "expert" not in TARGETS["torchtitan"].write(shared(1, 2, 4), "order.csv")
    with pytest.raises(CannotExpress, match="4 ranks share out experts, and replicas hold copies of the weights"):
        TARGETS["torchtitan"].write(shared(4, 2, 4, "none"), "order.csv")


@pytest.mark.parametrize("target", ["deepspeed", "pipelining", "pipedream"])
def test_others_have_no_words_for_shared_experts(target: str) -> None:
    with pytest.raises(CannotExpress, match="2 ranks share out the experts of each layer"):
        TARGETS[target].write(shared(2, 1, 2, "none"), "")


@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({}, False),
        ({"head_norm": True, "qkv_bias": True}, False),
        ({"architecture": "stablelm"}, True),
        ({"norms": 4}, True),
        ({"activation": "gelu"}, True),
        ({"out_bias": True}, True),
        ({"window": 128}, True),
        (ROUTED, False),
        (ROUTED | {"routed": "de"}, True),
        (ROUTED | {"shared_ffn": 512}, True),
        (LATENT, True),
    ],
)
def test_torchtitan_says_that_it_has_no_such_model(options: dict[str, Any], own: bool) -> None:
    assert ("yours to register" in TARGETS["torchtitan"].write(arranged(**options), "order.csv")) == own
