"""A language model as flags of Megatron-LM, and what no flag says of it."""

from itertools import groupby

from pipebench.costs.shapes.attention import Latent
from pipebench.costs.shapes.transformer import EMBEDDING, FURTHER, HEAD, LAYER, POSITIONS, LayerShape, layer_shape
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.formats.frameworks.arrangement import Arrangement
from pipebench.formats.frameworks.requirements import CannotExpress
from pipebench.formats.hf_layers import period

CLAMPED_GATE = (
    "experts of a gpt_oss are gated by a clamped, quick gelu (--swiglu has its widths and its work; the model "
    "itself takes --quick-geglu, --glu-linear-offset 1.0 and --activation-func-clamp-value 7.0 in its place)"
)
"""gpt_oss is the model whose layers have sinks and experts."""


def model_flags(made: Arrangement, layers: int) -> list[str]:
    """Flags of the model, a line each. Raises CannotExpress for layers that Megatron-LM does not train."""
    graph, layer = made.graph, _first(made.graph, LAYER)
    shapes = [layer_shape(operator) for operator in graph.operators if operator.kind == LAYER]
    shape = shapes[0]
    lines = [
        f"--num-layers {layers}",
        f"--hidden-size {shape.hidden}",
        f"--ffn-hidden-size {next((each.ffn for each in shapes if each.experts == 1), shape.ffn)}",
        f"--num-attention-heads {shape.heads}",
        f"--seq-length {shape.sequence * made.context_ranks}",
    ]
    if shape.latent:
        lines += _latent(shape, shape.latent)
    elif shape.kv_heads != shape.heads:
        lines.append(f"--group-query-attention --num-query-groups {shape.kv_heads}")
    if shape.head * shape.heads != shape.hidden and not shape.latent:
        lines.append(f"--kv-channels {shape.head}")
    further = sum(operator.kind == FURTHER for operator in graph.operators)
    lines += [f"--mtp-num-layers {further}"] if further else []
    lines += _windows(shapes)
    lines += _experts(made, shapes)
    if shape.branches == 2:
        lines.append("--swiglu")
    if layer.attributes.get("squared_relu"):
        lines.append("--squared-relu")
    if shape.rms:
        lines.append("--normalization RMSNorm")
    if shape.head_norm or shape.latent:
        lines.append("--qk-layernorm")
    if not (shape.output_bias or shape.ffn_biases):
        lines.append("--disable-bias-linear")
        lines += ["--add-qkv-bias"] if shape.qkv_bias else []
    if not shape.dropout:
        lines.append("--hidden-dropout 0.0 --attention-dropout 0.0")
    lines += _positions(graph, layer, made.context_ranks)
    if not made.shares_embedding:
        lines.append("--untie-embeddings-and-output-weights")
    return lines


def _latent(shape: LayerShape, latent: Latent) -> list[str]:
    """Megatron-LM norms what is of low rank where queries and keys are said to be normed (gpt_layer_specs.py)."""
    queries = f"--q-lora-rank {latent.query_rank} " if latent.query_rank else ""
    return [
        "--multi-latent-attention",
        f"{queries}--kv-lora-rank {latent.key_rank}",
        f"--qk-head-dim {shape.head - latent.rotated} --qk-pos-emb-head-dim {latent.rotated} "
        f"--v-head-dim {latent.value}",
    ]


def _windows(shapes: list[LayerShape]) -> list[str]:
    """A window counts the tokens before one's own; a layer whose number the frequency divides sees all."""
    window = max(each.window for each in shapes)
    sinks = ["--softmax-type learnable"] if shapes[0].sinks else []
    if not window:
        return sinks
    seen = [int(each.window > 0) for each in shapes]
    every = seen.index(0) + 1 if 0 in seen else 0
    regular = every > 1 and seen == [int(number % every != 0) for number in range(1, len(seen) + 1)]
    frequency = f" --window-attn-skip-freq {every if regular else _pattern(seen)}" if every else ""
    return [f"--window-size {window - 1},0{frequency}", *sinks]


def _experts(made: Arrangement, shapes: list[LayerShape]) -> list[str]:
    """Raises CannotExpress for experts with biases that tensor parallelism splits (TransformerConfig)."""
    routed = next((each for each in shapes if each.experts > 1), None)
    if routed is None:
        return []
    if routed.ffn_biases and made.tensor_parallel > 1 and made.expert_ranks == 1:
        raise CannotExpress(
            "experts with biases that tensor parallelism splits, which Megatron-LM does not train",
            "plan with --ep, which keeps experts whole, or --tp 1",
        )
    lines = [f"--num-experts {routed.experts} --moe-router-topk {routed.active}"]
    if any(each.experts == 1 for each in shapes):
        has = [int(each.experts > 1) for each in shapes]
        lines.append(f"--moe-ffn-hidden-size {routed.ffn} --moe-layer-freq {_pattern(has)}")
    if routed.shared_ffn:
        gate = " --moe-shared-expert-gate" if routed.shared_gate else ""
        lines.append(f"--moe-shared-expert-intermediate-size {routed.shared_ffn}{gate}")
    return lines


def _pattern(ones: list[int]) -> str:
    """A list of 0 and 1, one for each layer, as an expression that Megatron-LM evaluates (`_eval_pattern`)."""
    size = period(ones)
    size = size if len(ones) % size == 0 else len(ones)
    runs = [(each, len(list(run))) for each, run in groupby(ones[:size])]
    inside = "+".join(f"[{each}]*{count}" for each, count in runs)
    times = len(ones) // size
    return f"'({inside})*{times}'" if times > 1 else f"'{inside}'"


def _first(graph: OperatorGraph, kind: str) -> Operator:
    return next(operator for operator in graph.operators if operator.kind == kind)


def _positions(graph: OperatorGraph, layer: Operator, context_ranks: int) -> list[str]:
    """A table of positions is what Megatron has unless it is told."""
    learned = [operator for operator in graph.operators if operator.kind == POSITIONS]
    if learned:
        return [f"--max-position-embeddings {learned[0].dims['rows']}"]
    lines = [f"--max-position-embeddings {layer.dims['sequence'] * context_ranks}"]
    if layer.attributes.get("alibi"):
        return [*lines, "--position-embedding-type none"]
    percent = layer.attributes.get("rotary_percent", 100)
    return [
        *lines,
        "--position-embedding-type rope",
        *([f"--rotary-percent {percent / 100:g}"] if percent != 100 else []),
    ]


def unsaid(made: Arrangement) -> list[str]:
    """What the model is and no flag of Megatron says."""
    graph, layer = made.graph, _first(made.graph, LAYER)
    shape, said = layer_shape(layer), layer.attributes
    shapes = [layer_shape(operator) for operator in graph.operators if operator.kind == LAYER]
    tables, head = _first(graph, EMBEDDING).parameters, _first(graph, HEAD).parameters
    biases = shape.state_biases, shape.output_bias, shape.ffn_biases
    unsaid = {
        "bidirectional attention": not shape.causal,
        "attention and feed-forward part read one input": shape.parallel,
        "results of attention and feed-forward part are normed too": shape.norms > 2,
        "norms of queries and keys have weights of all heads": shape.wide_head_norm,
        "norms subtract the mean and do not shift": shape.centred and shape.vectors == 1,
        "norms have no weights": shape.vectors == 0,
        "ALiBi": bool(said.get("alibi")),
        "the feed-forward part is gated by gelu (--swiglu has its widths and its work)": shape.branches == 2
        and bool(said.get("gelu")),
        CLAMPED_GATE: shape.sinks and any(each.experts > 1 for each in shapes),
        "its activation is relu": bool(said.get("relu")),
        "a norm behind the embedding": len(tables) > 1,
        "a bias of the head": len(head) > 1,
        "biases of some products": any(biases[1:]) and not all(biases),
        "tokens see their part of the sequence": any(each.chunk for each in shapes),
        "a bias of the router": any(each.router_bias for each in shapes) and not any(biases[1:]),
    }
    return [what for what, holds in unsaid.items() if holds]
