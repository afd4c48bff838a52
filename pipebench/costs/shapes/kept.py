"""What a layer of a language model keeps for its backward."""

from collections.abc import Collection

from pipebench.costs.shapes.modules import repeats
from pipebench.costs.shapes.products import SPLIT_BY_INPUT
from pipebench.costs.shapes.transformer import MASK_BYTES, STATISTIC_BYTES, WIDE_BYTES, LayerShape
from pipebench.domain.framework import Elementwise, RecomputeModule


def saved_bytes(
    layer: LayerShape,
    element_bytes: int,
    ways: int = 1,
    *,
    scores: bool = False,
    sequence_split: bool = True,
    keeps_gathered: bool = False,
    narrow_bytes: float | None = None,
    elementwise: Elementwise = "fused",
    repeats_keys: bool = False,
    dispatches: bool = False,
    again: Collection[RecomputeModule] = (),
) -> float:
    """What the forward keeps on one of `ways` devices for one sample.

    A token: inputs of both norms and of both first products (4 h; `streams`), query, key, value and context,
    input and result of the activation, the dropout masks, attention's row sums. With 16 bits, h = heads x
    head, ffn = 4 h and dropout it is the 34 s h of Korthikanti et al. 2022, table 2 (selective recomputation),
    and the row sums.
    scores: attention keeps its softmax, the mask and the result of its dropout (their 5 a s^2) in place of the
    row sums.
    sequence_split: what lies outside the products is split over the sequence; else each device keeps it whole.
    keeps_gathered: what the first products read is kept as they read it, with the whole sequence; else it is
    gathered again in the backward.
    narrow_bytes: of an element of what the products read, where they run and keep it in another precision than
    the rest. The context is then kept twice: attention's backward reads it as it was made.
    elementwise: eager RMS norms keep their input in fp32, and what they scale; an eager gate its activated
    branch.
    repeats_keys: keys and values are kept for each head of queries.
    dispatches: tokens are copied to the ranks that share out the experts, so that the router keeps its input
    beside the copies that the experts read.
    Norms of heads keep their inputs besides. Of latent attention both sides of the norms between its products
    are kept, and queries, keys and values as attention reads them: none is made again. An expert that all
    tokens pass keeps its input and both sides of its activation; one that is scaled its result. A further
    layer keeps both sides of the norms before its first product, and its result.
    again: modules that run again. What one makes is not kept, unless what is kept reads it; what it reads is. So
    `moe` and `shared_experts` keep their input as it came. `core_attn` is `scores`.
    """
    again = repeats(layer, again)
    moe = "moe" in again
    repeated = repeats_keys and layer.latent is None
    states = layer.queries + (2 * layer.queries if repeated else layer.keys + layer.values)
    states = layer.context + (0 if "mla_up_proj" in again else states)
    normed = layer.queries + layer.keys if layer.head_norm else 0
    latent = layer.latent.ranks if layer.latent else 0
    eager = elementwise == "eager"
    # Of the activation both sides are kept: what it reads (`wide`), and what the last product reads.
    wide = 0 if moe or "mlp" in again else layer.active * layer.ffn
    narrow = 0 if "moe_act" in again else wide
    shared = 0 if moe or "shared_experts" in again else layer.shared_ffn
    inner = layer.branches * (wide + shared) + (layer.branches * (wide + shared) if eager else narrow + shared)
    reads = layer.reads - ((moe or "mlp" in again) and layer.reads == layer.parts)
    reads -= "layernorm" in again and layer.latent is not None
    routed = (layer.active - 1) * layer.hidden if layer.experts > 1 and not moe else 0
    masks = layer.parts * MASK_BYTES * layer.hidden if layer.dropout else 0
    less = 0 if narrow_bytes is None else element_bytes - narrow_bytes
    around: float = element_bytes * ((layer.streams - layer.reads + reads) * layer.hidden + routed) + masks
    around -= less * (reads * layer.hidden + routed)
    if layer.latent and "mla_up_proj" in again:
        around += element_bytes * (latent + layer.latent.rotated)
    else:
        around += (2 * element_bytes - less) * latent
    if (dispatches or moe) and "layernorm" not in again:
        around += element_bytes * layer.hidden
    around += 0 if moe else _shared_bytes(layer, element_bytes, narrow_bytes, again, dispatches=dispatches)
    around += WIDE_BYTES * (layer.norm_count * layer.hidden + latent) if eager and layer.rms else 0
    around += (5 * element_bytes - 2 * less) * layer.hidden if layer.further else 0
    softmax = (element_bytes + (element_bytes + MASK_BYTES if layer.dropout else 0)) * layer.whole_sequence
    inside: float = element_bytes * (states + normed + inner)
    inside += layer.heads * (softmax if scores else STATISTIC_BYTES)
    inside += WIDE_BYTES * normed if eager and layer.rms else 0
    inside -= less * (narrow + shared) - (narrow_bytes or 0) * layer.context
    if layer.mamba:
        inside += element_bytes * layer.mamba.kept + STATISTIC_BYTES * layer.mamba.groups
        inside -= less * layer.mamba.inner
    if sequence_split:
        whole = reads * (element_bytes - less) * layer.hidden if keeps_gathered else 0
        return layer.sequence * (whole + (around - whole + inside) / ways)
    # The inputs of the first products are whole on each device, as the norms' are.
    return layer.sequence * (around + inside / ways)


def _shared_bytes(
    layer: LayerShape,
    element_bytes: int,
    narrow_bytes: float | None,
    again: Collection[RecomputeModule],
    *,
    dispatches: bool,
) -> float:
    """Of a token: what an expert that all tokens pass reads, where the router does not keep it, and its result
    where that is scaled.
    """
    if not layer.shared_ffn:
        return 0
    repeated = "shared_experts" in again
    of_router = 0 if dispatches else element_bytes
    kept = of_router if repeated or narrow_bytes is None else narrow_bytes
    kept = 0 if "layernorm" in again else kept
    return (kept + (element_bytes if layer.shared_gate and not repeated else 0)) * layer.hidden


def checkpoint_bytes(
    layer: LayerShape,
    element_bytes: int,
    ways: int = 1,
    *,
    sequence_split: bool = True,
    elementwise: Elementwise = "fused",
) -> float:
    """What a checkpoint that keeps results of operators keeps on one of `ways` devices for one sample.

    The layer's input, the result and the row sums of attention, the results of every second product, and with
    tensor parallelism what both reduce-scatters leave. Products that are split by input leave their results
    whole on each device.
    elementwise: a compiler sees that no gradient reads the result of the last product, nor its reduce-scatter;
    eager code keeps them.
    """
    share = ways if sequence_split else 1
    eager = elementwise == "eager"
    scattered = (2 if eager else 1) if ways > 1 else 0
    around = layer.hidden / share + scattered * layer.hidden / share
    inside = layer.context / ways
    for each in (layer.linears if eager else layer.linears[:-1])[::2]:
        whole = each.name in SPLIT_BY_INPUT or not each.split
        inside += each.rows / layer.sequence * each.outer / (1 if whole else ways)
    row_sums = STATISTIC_BYTES * layer.heads / ways
    return layer.sequence * (element_bytes * (around + inside) + row_sums)
