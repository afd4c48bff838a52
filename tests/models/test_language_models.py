"""Language models: published numbers of parameters, and the chain that they are."""

from typing import Any

import pytest

from pipebench.costs.shapes.flops import graph_flops
from pipebench.costs.shapes.transformer import HEAD, LANGUAGE_KINDS, layer_shape
from pipebench.domain.errors import InvalidValue
from pipebench.domain.graph import OperatorGraph
from tests.language_models import LLAMA_70B_OPTIONS
from tests.models.zoo import model

FP32_BYTES = 4
LLAMA_7B = {"layers": 32, "hidden": 4096, "heads": 32, "ffn": 11008, "vocab": 32000}
GPT2 = {"architecture": "gpt2", "layers": 12, "hidden": 768, "heads": 12, "ffn": 3072, "vocab": 50257}
BERT = {"architecture": "bert", "layers": 12, "hidden": 768, "heads": 12, "ffn": 3072, "vocab": 30522}
MIXTRAL = {
    "architecture": "mixtral",
    "layers": 32,
    "hidden": 4096,
    "heads": 32,
    "kv_heads": 8,
    "ffn": 14336,
    "vocab": 32000,
    "experts": 8,
    "active": 2,
}
QWEN25_7B = {"layers": 28, "hidden": 3584, "heads": 28, "kv_heads": 4, "ffn": 18944, "vocab": 152064}
QWEN25_72B = {"layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8, "ffn": 29568, "vocab": 152064}
QWEN3_8B = {"layers": 36, "hidden": 4096, "heads": 32, "kv_heads": 8, "head": 128, "ffn": 12288, "vocab": 151936}
QWEN3_06B = {"layers": 28, "hidden": 1024, "heads": 16, "kv_heads": 8, "head": 128, "ffn": 3072, "vocab": 151936}


def parameters(graph: OperatorGraph) -> int:
    return sum(parameter.bytes for parameter in graph.parameters) // FP32_BYTES


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (LLAMA_7B, 6_738_415_616),
        (LLAMA_70B_OPTIONS, 68_976_648_192),
        (MIXTRAL, 46_702_792_704),
        (QWEN25_7B | {"qkv_bias": True}, 7_615_616_512),
        (QWEN25_72B | {"qkv_bias": True}, 72_706_203_648),
        (QWEN3_8B | {"head_norm": True}, 8_190_735_360),
        (QWEN3_06B | {"head_norm": True, "tied": True}, 596_049_920),
        (GPT2 | {"tied": True, "positions": 1024, "sequence": 1024}, 124_439_808),
        # BertForMaskedLM has 109,514,298; the 30,522 biases of its decoder are left out.
        (BERT | {"tied": True, "positions": 512, "sequence": 512}, 109_514_298 - 30_522),
    ],
)
def test_published_counts(options: dict[str, Any], count: int) -> None:
    assert parameters(model("llm", **options)) == count


def test_it_is_a_chain_of_operators_by_module() -> None:
    graph = model("llm", layers=3, hidden=64, heads=4, ffn=128, vocab=100, sequence=16)
    assert [op.path for op in graph.operators] == [
        "model.embed_tokens",
        "model.layers.0",
        "model.layers.1",
        "model.layers.2",
        "model.norm",
        "lm_head",
    ]
    assert [op.layer for op in graph.operators] == [None, 0, 1, 2, None, None]
    assert [len(after) for after in graph.successors] == [1, 1, 1, 1, 1, 0]
    assert {op.kind for op in graph.operators} <= set(LANGUAGE_KINDS)


def test_a_tied_table_is_one_parameter() -> None:
    graph = model("llm", **GPT2, tied=True)
    tables = [op.parameters for op in graph.operators if op.kind in ("vocab_embedding", HEAD)]
    assert tables == [("embedding.table",), ("embedding.table",)]


def test_flops_are_two_a_weight_and_attention() -> None:
    """Narayanan et al. 2021, section 5.1: 24 B s l h^2 (1 + s / (6 h) + V / (12 l h)), attention not halved."""
    layers, hidden, sequence, vocab = 4, 1024, 512, 8000
    graph = model(
        "llm",
        architecture="bert",
        layers=layers,
        hidden=hidden,
        heads=8,
        ffn=4 * hidden,
        vocab=vocab,
        sequence=sequence,
    )
    expected = 24 * sequence * layers * hidden**2 * (1 + sequence / (6 * hidden) + vocab / (12 * layers * hidden))
    assert graph_flops(graph) == pytest.approx(expected, rel=1e-3)


def test_experts_multiply_weights_not_work() -> None:
    one = model("llm", **MIXTRAL | {"experts": 1, "active": 1})
    eight = model("llm", **MIXTRAL | {"active": 1})
    shapes = [layer_shape(graph.operators[1]) for graph in (one, eight)]
    assert shapes[1].products[2].weights == 8 * shapes[0].products[2].weights
    assert shapes[1].products[2].flops == shapes[0].products[2].flops


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"hidden": 100, "heads": 8}, "does not divide hidden"),
        ({"heads": 8, "kv_heads": 3}, "kv_heads=3 does not divide"),
        ({"window": 4, "chunk": 4}, "window=4 and chunk=4: one of them"),
        ({"architecture": "bert", "window": 4}, "architecture=bert sees tokens behind as well"),
        ({"windowed": "wf"}, "windowed=wf: without a window"),
        ({"window": 4, "windowed": "wx"}, "windowed=wx: it takes w"),
        ({"value_head": 8}, "value_head=8: only with key_rank"),
        ({"key_rank": 8, "rotated": 128}, "rotated=128: a head has 128 features"),
        ({"key_rank": 8, "kv_heads": 2}, "kv_heads=2: with key_rank there are as many as heads"),
        ({"key_rank": 8, "head_norm": True}, "head_norm=true: not with key_rank"),
        ({"routed": "de"}, "routed=de: only with experts"),
        ({"architecture": "mixtral", "experts": 2, "routed": "d,e"}, "routed=d,e: it takes e"),
        ({"architecture": "mixtral", "experts": 2, "dense_ffn": 8}, "dense_ffn=8: only with routed"),
        ({"architecture": "mixtral", "experts": 2, "shared_gate": True}, "shared_gate=true: only with shared_ffn"),
        ({"experts": 4}, "only architecture=mixtral"),
        ({"architecture": "mixtral", "experts": 2, "active": 3}, "not as many"),
        ({"architecture": "gpt2", "positions": 1024, "sequence": 2048}, "longer than the 1024"),
        ({"architecture": "gpt2", "qkv_bias": True}, "qkv_bias=true: all products of architecture=gpt2 have"),
        ({"architecture": "olmo", "head_norm": True}, "head_norm=true: the norms of architecture=olmo have no"),
        ({"wide_head_norm": True}, "wide_head_norm=true: only with head_norm=true"),
        ({"norms": 3}, "norms is 3, it must be 1, 2 or 4"),
        ({"norms": 1}, "norms=1: 1 goes with parallel=true"),
        ({"norms": 4, "parallel": True}, "norms=4: 1 goes with parallel=true, 4 with"),
        ({"rotary_percent": 101}, "rotary_percent is 101"),
        ({"layers": 0}, "layers is 0"),
    ],
)
def test_bad_options(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        model("llm", **options)
