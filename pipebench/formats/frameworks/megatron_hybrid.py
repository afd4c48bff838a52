"""A model whose layers have one part each as flags of Megatron-LM's HybridModel (pretrain_hybrid.py).

The part of each layer is a letter of --hybrid-layer-pattern, in which | ends a stage (`validate_args` of
megatron/training/arguments.py, core/models/hybrid/hybrid_layer_allocation.py).
"""

from pipebench.costs.shapes.mamba import Mamba
from pipebench.costs.shapes.transformer import (
    ATTENTION,
    EMBEDDING,
    FEED_FORWARD,
    HEAD,
    MAMBA,
    NORM,
    LayerShape,
    layer_shape,
)
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.formats.frameworks.arrangement import Arrangement
from pipebench.formats.frameworks.requirements import CannotExpress

ONE_PART = (MAMBA, ATTENTION, FEED_FORWARD)
SPECIFICATION = "--spec megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec"
KERNEL, CHUNK = 4, 128
"""Of its convolutions and scans, which no flag says (core/ssm/mamba_mixer.py)."""
HYBRID_EXCLUSIVE = (
    "for pretrain_hybrid.py; not together with --pipeline-model-parallel-layout, "
    "--num-layers-per-virtual-pipeline-stage, --num-virtual-stages-per-pipeline-rank, "
    "--decoder-first/last-pipeline-num-layers or --account-for-*"
)


def is_hybrid(graph: OperatorGraph) -> bool:
    """Whether layers have one part each."""
    return any(operator.kind in ONE_PART for operator in graph.operators)


def require_hybrid(graph: OperatorGraph) -> None:
    """Raise CannotExpress for a model with other parts than a hybrid one has."""
    for operator in graph.operators:
        if operator.kind not in (*ONE_PART, EMBEDDING, NORM, HEAD):
            raise CannotExpress(f"{operator.name!r} is nothing that a hybrid model has")


def pattern(made: Arrangement) -> tuple[str, ...]:
    """The letters of each stage; the embedding stands before the first, norm and head behind the last.

    Raises CannotExpress.
    """
    require_hybrid(made.graph)
    head = next(number for number, stage in enumerate(made.operators) if any(op.kind == HEAD for op in stage))
    norm = next(number for number, stage in enumerate(made.operators) if any(op.kind == NORM for op in stage))
    if norm != head and all(operator.kind == NORM for operator in made.operators[norm]):
        raise CannotExpress(f"stage {norm} holds the norm alone, which Megatron does not place by itself")
    return tuple("".join(_letter(each) for each in stage if each.kind in ONE_PART) for stage in made.operators)


def _letter(operator: Operator) -> str:
    if operator.kind == FEED_FORWARD:
        return "E" if layer_shape(operator).experts > 1 else "-"
    return "M" if operator.kind == MAMBA else "*"


def hybrid_flags(made: Arrangement) -> list[str]:
    """Flags of the model, a line each. Raises CannotExpress for layers that Megatron-LM does not train."""
    layers = [operator for operator in made.graph.operators if operator.kind in ONE_PART]
    shapes = [layer_shape(operator) for operator in layers]
    attention = next((each for each in shapes if each.heads), None)
    mamba = next((each.mamba for each in shapes if each.mamba), None)
    dense, routed = (_with_experts(shapes, several) for several in (False, True))
    fed, tokens = dense or routed, shapes[0].sequence * made.context_ranks
    lines = [
        SPECIFICATION,
        f"--hidden-size {shapes[0].hidden}",
        *([f"--ffn-hidden-size {fed.ffn}"] if fed else []),
        f"--num-attention-heads {attention.heads if attention else made.tensor_parallel}",
        f"--seq-length {tokens}",
    ]
    if attention:
        lines += _attention(attention)
    lines += _experts(routed) if routed else []
    lines += _mamba(mamba)
    lines += ["--squared-relu"] if any(each.attributes.get("squared_relu") for each in layers) else []
    lines.append("--normalization RMSNorm")
    if not any(each.output_bias or each.ffn_biases for each in shapes):
        lines.append("--disable-bias-linear")
        lines += ["--add-qkv-bias"] if attention and attention.qkv_bias else []
    if not shapes[0].dropout:
        lines.append("--hidden-dropout 0.0 --attention-dropout 0.0")
    lines += [f"--max-position-embeddings {tokens}", "--position-embedding-type none"]
    return lines if made.shares_embedding else [*lines, "--untie-embeddings-and-output-weights"]


def _with_experts(shapes: list[LayerShape], several: bool) -> LayerShape | None:
    """The first feed-forward part, with experts or without."""
    return next((each for each in shapes if each.ffn and (each.experts > 1) == several), None)


def _attention(shape: LayerShape) -> list[str]:
    lines = []
    if shape.kv_heads != shape.heads:
        lines.append(f"--group-query-attention --num-query-groups {shape.kv_heads}")
    if shape.head * shape.heads != shape.hidden:
        lines.append(f"--kv-channels {shape.head}")
    return [*lines, *(["--qk-layernorm"] if shape.head_norm else [])]


def _experts(shape: LayerShape) -> list[str]:
    lines = [
        f"--num-experts {shape.experts} --moe-router-topk {shape.active}",
        f"--moe-ffn-hidden-size {shape.ffn}",
    ]
    if shape.shared_ffn:
        gate = " --moe-shared-expert-gate" if shape.shared_gate else ""
        lines.append(f"--moe-shared-expert-intermediate-size {shape.shared_ffn}{gate}")
    return lines


def _mamba(mamba: Mamba | None) -> list[str]:
    if mamba is None:
        return []
    if mamba.kernel != KERNEL:
        raise CannotExpress(
            f"a convolution over {mamba.kernel} tokens: those of Megatron-LM's Mamba-2 see {KERNEL} tokens"
        )
    return [
        f"--mamba-num-heads {mamba.heads} --mamba-head-dim {mamba.head}",
        f"--mamba-num-groups {mamba.groups} --mamba-state-dim {mamba.state}",
    ]


def hybrid_unsaid(made: Arrangement) -> list[str]:
    """What the model is and no flag of Megatron says."""
    layers = [operator for operator in made.graph.operators if operator.kind in ONE_PART]
    shapes = [layer_shape(operator) for operator in layers]
    chunk = next((each.mamba.chunk for each in shapes if each.mamba), CHUNK)
    activation = next((word for each in layers for word in ("relu", "silu") if each.attributes.get(word)), "")
    biases = [each.output_bias for each in shapes if each.heads] + [each.ffn_biases for each in shapes if each.ffn]
    unsaid = {
        f"scans in chunks of {chunk} tokens (Megatron-LM's have {CHUNK})": chunk != CHUNK,
        f"its activation is {activation}": bool(activation),
        "norms of queries and keys have weights of all heads": any(each.wide_head_norm for each in shapes),
        "biases of some products": any(biases) and not all(biases),
    }
    return [what for what, holds in unsaid.items() if holds]
