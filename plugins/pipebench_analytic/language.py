"""What the operators of a language model cost: each is several kernels, and its ways to run go with all of them.

Tensor parallelism is Megatron's with sequence parallelism (Korthikanti et al. 2022, section 4.2.2): an
all-gather and a reduce-scatter, together the bytes of an all-reduce, around attention and around the
feed-forward part, forward and backward; embedding and head are split over the vocabulary. The ring runs at the
rate of the device's peer links. Recomputation keeps the input of each layer and runs its forward again;
embedding, norm and head are left as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd

from pipebench.costs.shapes.kept import saved_bytes
from pipebench.costs.shapes.mamba import ScanStep
from pipebench.costs.shapes.transformer import (
    EMBEDDING,
    FURTHER,
    HEAD,
    LANGUAGE_KINDS,
    LAYERS,
    LOGIT_BYTES,
    NORM,
    STACKED,
    LayerShape,
    layer_shape,
)
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.profile import Alternative, OperatorCosts
from pipebench.domain.recomputation import Repeated
from pipebench_analytic.alternatives import alternative_id
from pipebench_analytic.context import SharedSequence, backward_waits_s, forward_waits_s, hop_s
from pipebench_analytic.exchange import SharedExperts, all_to_all_s
from pipebench_analytic.roofline import Kernel, Roofline, significant
from pipebench_analytic.work import OperatorWork

DEFINITION = (
    "language models: inputs of norms and products, query, key, value and context, both sides of the activation, "
    "of Mamba-2 what its first product made and three activations of its heads, "
    "dropout masks, attention's row sums; fp32 logits; under tensor parallelism all of it split, over the "
    "sequence "
    "outside the products"
)


@dataclass(frozen=True, slots=True)
class Shared:
    """What ranks of a stage share out of a layer: its experts, its tokens."""

    experts: SharedExperts
    sequence: SharedSequence


@dataclass(frozen=True, slots=True)
class Parts:
    """One operator on one of `ways` devices.

    forward, inputs, weights: kernels of the forward and of both gradients.
    reduced: bytes a sample that pass an all-reduce, forward and again backward.
    held: bytes of weights.
    saved: bytes for a sample.
    kept: the same when the forward is run again; None where that changes nothing.
    core: the kernel of attention's core, where there is one. It is fused and keeps no scores, so that to run it
    again wins no memory: what selective recomputation repeats, nothing where there is no core.
    experts: of `held` the bytes of experts that ranks share out. dispatched: bytes for a sample that these ranks
    exchange, twice forward and twice backward.
    core_gradient: the kernel of the core's backward. passed: bytes of keys and values of one rank for a sample,
    where ranks share out sequences.
    """

    forward: Sequence[Kernel]
    inputs: Sequence[Kernel]
    weights: Sequence[Kernel]
    reduced: float
    held: int
    saved: float
    kept: float | None = None
    core: Kernel | None = None
    experts: int = 0
    dispatched: float = 0.0
    core_gradient: Kernel | None = None
    passed: float = 0.0


def is_language(kind: str) -> bool:
    """Whether this module knows what an operator of that kind costs."""
    return kind in LANGUAGE_KINDS


def tensor_degrees(graph: OperatorGraph, largest: int) -> tuple[int, ...]:
    """Powers of two from 2 that divide heads, key heads, groups of heads, feed-forward width and sequence of every
    layer.
    """
    shapes = [layer_shape(operator) for operator in graph.operators if operator.kind in STACKED]
    common = 0
    for shape in shapes:
        common = gcd(common, shape.heads, shape.kv_heads, shape.ffn, shape.shared_ffn, shape.sequence)
        common = gcd(common, shape.mamba.groups) if shape.mamba else common
    degrees = []
    ways = 2
    while ways <= largest and common and common % ways == 0:
        degrees.append(ways)
        ways *= 2
    return tuple(degrees)


def language_costs(
    work: OperatorWork,
    roofline: Roofline,
    sizes: Sequence[int],
    degrees: Sequence[int],
    recomputed: Sequence[Repeated],
    shared: Shared,
) -> OperatorCosts:
    """Costs on one device type, with an alternative for each degree, recomputed and not (`tp8-sp-recompute`).

    recomputed: the kinds of recomputation that are offered. shared: what ranks share out of a layer.
    """
    plain = _parts(work, 1, shared)
    forward, inputs, weights = (
        [sum(roofline.seconds(kernel, size) for kernel in kernels) for size in sizes]
        for kernels in (plain.forward, plain.inputs, plain.weights)
    )
    if plain.dispatched or plain.passed:
        waited = zip(*(_exchanged_s(plain, roofline, size, 1, shared) for size in sizes), strict=True)
        forward, inputs = (
            [each + wait for each, wait in zip(run, waits, strict=True)]
            for run, waits in zip((forward, inputs), waited, strict=True)
        )
    offered = []
    for ways in (1, *degrees):
        parts = _parts(work, ways, shared)
        if ways > 1:
            offered.append(_alternative(parts, roofline, sizes, ways, "none", shared))
        offered += [
            _alternative(parts, roofline, sizes, ways, again, shared)
            for again in recomputed
            if again == "full" or work.operator.kind in LAYERS
        ]
    contracts = work.operator.kind in (*LAYERS, HEAD)
    return OperatorCosts(
        operator=work.operator.name,
        forward_s=tuple(map(significant, forward)),
        backward_s=tuple(significant(i + w) for i, w in zip(inputs, weights, strict=True)),
        weight_gradient_s=tuple(map(significant, weights)) if plain.weights else (),
        saved_bytes_per_sample=significant(plain.saved),
        workspace_bytes=roofline.options.workspace_bytes if contracts else 0,
        alternatives=tuple(offered),
    )


def _exchanged_s(parts: Parts, roofline: Roofline, samples: int, ways: int, shared: Shared) -> tuple[float, float]:
    """What a device waits for in a forward and in a backward.

    Tokens go to the ranks of their experts, and come back. Keys and values of all ranks that share out a sequence
    come by, and their gradients go back.
    """

    def inside_s(size_bytes: float, devices: int) -> float:
        return roofline.all_reduce_seconds(size_bytes, 1, devices) / 2

    def all_reduce_s(size_bytes: float, devices: int) -> float:
        return 2 * inside_s(size_bytes, devices)

    experts, sequence = shared.experts, shared.sequence
    tokens_s = 2 * all_to_all_s(parts.dispatched * samples, experts.ranks, experts.links, inside_s)
    if not parts.passed:
        return tokens_s, tokens_s

    def hop(count: float) -> float:
        return hop_s(count * parts.passed * samples, sequence.ranks, ways, sequence.links, all_reduce_s)

    steps = [roofline.seconds(kernel, samples) / sequence.ranks for kernel in (parts.core, parts.core_gradient)]
    return (
        tokens_s + sum(forward_waits_s(sequence.how, sequence.ranks, steps[0], hop)),
        tokens_s + sum(backward_waits_s(sequence.how, sequence.ranks, steps[1], hop)),
    )


def _alternative(
    parts: Parts,
    roofline: Roofline,
    sizes: Sequence[int],
    ways: int,
    again: Repeated,
    shared: Shared,
) -> Alternative:
    forward, backward = [], []
    for size in sizes:
        sent = roofline.all_reduce_seconds(parts.reduced, size, ways) if ways > 1 else 0.0
        waited = (
            _exchanged_s(parts, roofline, size, ways, shared) if parts.dispatched or parts.passed else (0.0,) * 2
        )
        there, back_again = (sent + each for each in waited)
        run = sum(roofline.seconds(kernel, size) for kernel in parts.forward) + there
        back = sum(roofline.seconds(kernel, size) for kernel in (*parts.inputs, *parts.weights)) + back_again
        forward.append(run)
        if again == "full" and parts.kept is not None:
            back += run
        elif again == "selective" and parts.core is not None:
            back += roofline.seconds(parts.core, size) + (waited[0] if parts.passed else 0.0)
        backward.append(back)
    kept = parts.kept if again == "full" and parts.kept is not None else parts.saved
    return Alternative(
        id=alternative_id(ways, f"tp{ways}-sp", again),
        tensor_parallel=ways,
        recompute=again != "none",
        selective=again == "selective",
        forward_s=tuple(map(significant, forward)),
        backward_s=tuple(map(significant, backward)),
        parameter_bytes=parts.held,
        saved_bytes_per_sample=significant(kept),
        collective_bytes=significant(parts.reduced if ways > 1 else 0.0),
        transient_bytes_per_sample=significant(parts.saved - kept),
        expert_bytes=parts.experts,
    )


def _parts(work: OperatorWork, ways: int, shared: Shared) -> Parts:
    operator, size = work.operator, work.element_bytes
    if operator.kind in LAYERS:
        shape = layer_shape(operator, shared.sequence.ranks)
        parts = _layer(shape, size, ways, shared.experts.ranks if shape.experts > 1 else 1)
        return _with_lookup(parts, operator, size, ways) if operator.kind == FURTHER else parts
    tokens, hidden = float(operator.dims["sequence"]), operator.dims["hidden"]
    stream = size * tokens * hidden / ways
    if operator.kind == HEAD:
        return _head(work, tokens, hidden, stream, ways)
    if operator.kind == NORM:
        matrix = work.weight_bytes / size > 2 * hidden
        passing = Kernel(2 * tokens * work.weight_bytes / size / ways if matrix else 0.0, 2 * stream, 0.0)
        return Parts((passing,), (Kernel(2 * passing.flops, 5 * stream, 0.0),), (), 0.0, work.weight_bytes, stream)
    rows = Kernel(0.0, 3 * stream)
    reduced = size * tokens * hidden / 2 if operator.kind == EMBEDDING and ways > 1 else 0.0
    held = -(-work.weight_bytes // ways) if operator.kind == EMBEDDING else work.weight_bytes
    return Parts((rows,), (), (rows,), reduced, held, work.input_bytes if operator.kind == EMBEDDING else 0.0)


def _head(work: OperatorWork, tokens: float, hidden: int, stream: float, ways: int) -> Parts:
    """The product and the loss, which goes over the fp32 logits twice forward and twice backward."""
    size, vocab = work.element_bytes, -(-work.operator.dims["vocab"] // ways)
    times = work.operator.dims.get("predictions", 1)  # tokens that are predicted of each
    logits = LOGIT_BYTES * tokens * vocab
    product = Kernel(
        2 * tokens * hidden * vocab, size * tokens * (hidden + vocab), float(size * hidden * vocab), tokens
    )
    loss = Kernel(0.0, 2 * logits)
    reduced = size * tokens * hidden / 2 if ways > 1 else 0.0
    bias = int(work.weight_bytes > size * hidden * work.operator.dims["vocab"])
    held = size * (hidden + bias) * vocab
    both = (product, loss) * times
    return Parts(both, both, (product,) * times, times * reduced, held, times * (stream + logits))


def _layer(shape: LayerShape, size: int, ways: int, ranks: int) -> Parts:
    """A product's two gradients cost as much as it does; flash attention's backward 2.5 times its forward.

    ranks: that share out the experts. Each has a part of them, whole, with the tokens of all ranks; under tensor
    parallelism its own tokens are those of its part of the sequence.
    """
    tokens, stream = float(shape.sequence), size * shape.sequence * shape.hidden / ways
    products = []
    for product in shape.products:
        share = ways if product.split else 1
        moved = size * product.rows * (product.inner + product.outer / share)
        held, rows, flops = size * product.weights / share, product.rows / product.copies, product.flops / share
        if ranks > 1 and (product.copies > 1 or not product.split):
            moved, flops = size * product.rows * (product.inner + product.outer) / ways, product.flops / ways
            together = ranks if product.copies > 1 else 1
            held, rows = size * product.weights / together, product.rows * together / (product.copies * ways)
        elif product.by_tokens:
            moved, flops, rows = moved / ways, flops / ways, rows / ways
        products.append(Kernel(flops, moved, float(held), rows))
    routing: list[Kernel] = []
    copies = size * tokens * shape.active * shape.hidden / ways if ranks > 1 else 0.0
    if ranks > 1:
        routing = [Kernel(0.0, stream + copies)] * 2
        routing += [Kernel(0.0, 2 * copies)] * 2 if shape.experts > ranks else []
    core = core_gradient = None
    if shape.heads:
        states = size * tokens * (shape.queries + shape.keys + shape.values + shape.context) / ways
        core = Kernel(shape.core_flops / ways, states, 0.0, tokens)
        core_gradient = Kernel(2.5 * core.flops, 2 * core.bytes, 0.0, tokens)
    inner = size * tokens * (shape.active * shape.ffn + shape.shared_ffn) / ways
    residuals = [Kernel(0.0, 3 * stream)] * shape.parts
    passes = [*[Kernel(0.0, 2 * stream)] * shape.norm_count, *residuals]
    back = [*[Kernel(0.0, 5 * stream)] * shape.norm_count, *residuals]
    if shape.ffn:
        passes.append(Kernel(0.0, (shape.branches + 1) * inner))
        back.append(Kernel(0.0, (2 * shape.branches + 1) * inner))
    if shape.mamba:
        passes += _steps(shape.mamba.forward(shape.sequence), tokens / ways, size)
        back += _steps(shape.mamba.backward(shape.sequence), tokens / ways, size)
    passes += _besides(shape, size * tokens / ways, 2, 3)
    back += _besides(shape, size * tokens / ways, 5, 3)
    saved = saved_bytes(shape, size, ways, dispatches=ranks > 1)
    return Parts(
        forward=(*products, *((core,) if core else ()), *passes, *routing),
        inputs=(*products, *((core_gradient,) if core_gradient else ()), *back, *routing),
        weights=products,
        reduced=sum(shape.crossings(shared=ranks > 1)) * size * tokens if ways > 1 else 0.0,
        held=size * shape.weights(ways, ranks),
        experts=size * shape.expert_weights // ranks if ranks > 1 else 0,
        dispatched=copies,
        saved=saved,
        kept=min(saved, stream),
        core=core,
        core_gradient=core_gradient,
        passed=size * tokens * (shape.keys + shape.values) / ways if shape.context_ranks > 1 else 0.0,
    )


def _steps(steps: Sequence[ScanStep], tokens: float, size: int) -> list[Kernel]:
    """Kernels of a scan: contractions where they have FLOP."""
    return [
        Kernel(tokens * step.flops, tokens * step.bytes(size), 0.0, tokens if step.flops else 0.0)
        for step in steps
    ]


def _with_lookup(parts: Parts, operator: Operator, size: int, ways: int) -> Parts:
    """A layer that looks up the next token's embedding, with its part of the table."""
    hidden = operator.dims["hidden"]
    rows = Kernel(0.0, 3 * size * operator.dims["sequence"] * hidden / ways)
    return replace(
        parts,
        forward=(*parts.forward, rows),
        weights=(*parts.weights, rows),
        held=parts.held + -(-size * operator.dims["entries"] * hidden // ways),
    )


def _besides(shape: LayerShape, size: float, norm_passes: int, sum_passes: int) -> list[Kernel]:
    """Norms between products of low rank with the keys that are joined, and the sum with an expert that all tokens
    pass. size: bytes of a feature of all tokens.
    """
    latent = shape.latent
    kernels = [Kernel(0.0, size * (norm_passes * latent.ranks + sum_passes * shape.keys))] if latent else []
    return [*kernels, *([Kernel(0.0, sum_passes * size * shape.hidden)] if shape.shared_ffn else [])]
