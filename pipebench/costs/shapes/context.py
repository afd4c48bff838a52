"""Context parallelism: which numbers of ranks can share out sequences, and graph and cluster as they see them.

Each rank holds the same weights and two of 2 C chunks of the sequence of each sample, one from its front and one
from its end, so that under a causal mask all have equal work (Megatron-LM, context_parallel; torchtitan,
ParallelDims.seq_len_divisor). C consecutive accelerators of a replica are one device of the problem: a planner
sees as many devices as there are such groups, with what one rank computes, keeps and sends.
"""

from msgspec.structs import replace

from pipebench.costs.shapes.transformer import LANGUAGE_KINDS, LAYERS, STACKED, layer_shape
from pipebench.defaults import LANGUAGE_MODEL
from pipebench.domain.cluster import Cluster, LinkLevel, Ranks, as_one
from pipebench.domain.errors import InvalidValue, nearest_numbers
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.problem import Pins
from pipebench.domain.workload import pin_flag

SEQUENCE = "sequence"
"""The dim that counts the tokens of a sample."""
CHUNKS = 2
"""Of a sequence on each rank."""
DEGREES = ("tensor_parallel", "data_parallel", "pipeline")


def refuse_context_ranks(graph: OperatorGraph, ranks: int, cluster: Cluster, pins: Pins, name: str) -> None:
    """Raise InvalidValue, with the nearest degrees that are valid, where so many ranks cannot share out a model's
    sequences on these devices. cluster: of single accelerators. name: of the model.

    Twice as many divide the sequence, they divide the devices, and no group of them begins or ends inside a group
    of linked devices that others are in too. Pinned degrees leave enough devices for them.
    """
    if ranks == 1:
        return
    lengths = sorted({operator.dims[SEQUENCE] for operator in graph.operators if operator.kind in STACKED})
    if not lengths or any(operator.kind not in LANGUAGE_KINDS for operator in graph.operators):
        raise InvalidValue(
            f"--cp {ranks}: {name} is no language model whose layers are one operator each",
            f"leave --cp out, or name such a model with --models {LANGUAGE_MODEL} or --config",
        )
    if partial := _partial(graph):
        raise InvalidValue(f"--cp {ranks}: {name}: {partial}", "leave --cp out")
    pinned = 1
    for degree in DEGREES:
        pinned *= getattr(pins, degree) or 1

    def fault(count: int) -> str:
        odd = next((length for length in lengths if length % (CHUNKS * count)), None)
        if odd is not None:
            return (
                f"a rank has {CHUNKS} of {CHUNKS * count} chunks, which do not divide the sequence of {odd} tokens"
            )
        if cluster.size % count:
            return f"it does not divide the {cluster.size} devices"
        if pinned * count > cluster.size:
            said = " x ".join(f"{pin_flag(each)} {value}" for each in DEGREES if (value := getattr(pins, each)))
            return f"{said} x --cp {count} = {pinned * count} devices, there are {cluster.size}"
        return _astride(cluster, count)

    why = fault(ranks)
    if not why:
        return
    found = [count for count in range(1, cluster.size + 1) if not fault(count)]
    hint = f"the nearest valid: --cp {nearest_numbers(ranks, found)}" if found else "pin smaller degrees"
    raise InvalidValue(f"--cp {ranks}: {why}", hint)


def _partial(graph: OperatorGraph) -> str:
    """The first layer whose attention ranks do not share out evenly, or that has a scan, or ''. Megatron-LM's ring
    has none.
    """
    for operator in graph.operators:
        shape = layer_shape(operator) if operator.kind in LAYERS else None
        if shape and (shape.window or shape.chunk or shape.sinks):
            return f"queries of layer {operator.name!r} see a part of the keys, or sinks: that has no price"
        if shape and shape.mamba:
            return f"layer {operator.name!r} is Mamba-2: how ranks share out the sequence of its scan has no price"
    return ""


def _astride(cluster: Cluster, ranks: int) -> str:
    """The first reason why groups of so many consecutive devices do not fit into those of the links, or ''."""
    for level in cluster.levels[:-1]:
        if level.group % ranks and ranks % level.group:
            return (
                f"groups of {ranks} devices do not fit into those of {level.group} that level {level.name!r} has"
            )
    for first in range(0, cluster.size, ranks):
        if len(set(cluster.devices[first : first + ranks])) > 1:
            return f"devices {first} to {first + ranks - 1} are of several types"
    return ""


def with_context_ranks(graph: OperatorGraph, ranks: int) -> OperatorGraph:
    """The graph of a language model as one of so many ranks holds it: its tokens alone, and whole weights.

    Raises InvalidValue where the sequence cannot be shared out so.
    """
    if ranks == 1:
        return graph
    if partial := _partial(graph):
        raise InvalidValue(partial, "leave --cp out")
    for operator in graph.operators:
        length = operator.dims.get(SEQUENCE)
        if length is None or length % (CHUNKS * ranks):
            tokens = "has no sequence" if length is None else f"has {length} tokens"
            raise InvalidValue(
                f"operator {operator.name!r} {tokens}, which {ranks} ranks cannot share out evenly",
                f"take a language model whose sequence is a multiple of {CHUNKS * ranks} tokens",
            )
    return replace(
        graph,
        operators=tuple(
            replace(each, dims=each.dims | {SEQUENCE: each.dims[SEQUENCE] // ranks}) for each in graph.operators
        ),
        tensors=tuple(
            replace(
                each,
                forward_bytes_per_sample=each.forward_bytes_per_sample / ranks,
                gradient_bytes_per_sample=each.gradient_bytes_per_sample / ranks,
            )
            for each in graph.tensors
        ),
        context_parallel=ranks,
    )


def with_context_devices(cluster: Cluster, ranks: int) -> Cluster:
    """The cluster whose devices stand for so many consecutive accelerators each.

    A message between two such devices is one between each rank of both, at once, so that links have the rates of
    one rank: what the accelerators of a group share together is divided among those of the group that send.
    Levels inside of a device are passed on the way: the slowest of them counts. Raises InvalidValue where groups
    do not fit (`refuse_context_ranks` says it of a user's number).
    """
    if ranks == 1:
        return cluster
    astride = _astride(cluster, ranks)
    if cluster.size % ranks or astride:
        raise InvalidValue(
            astride or f"{ranks} ranks do not divide the {cluster.size} devices of {cluster.name!r}"
        )
    levels: list[LinkLevel] = []
    inside: list[LinkLevel] = []
    for level, below in zip(cluster.levels, (1, *(each.group for each in cluster.levels)), strict=False):
        shared = level.shared_bandwidth_bytes_s
        each = replace(level, shared_bandwidth_bytes_s=None if shared is None else shared / min(ranks, below))
        if level.group <= ranks and level is not cluster.levels[-1]:
            inside.append(each)
            continue
        limits = [s for s in (each.shared_bandwidth_bytes_s, *(i.shared_bandwidth_bytes_s for i in inside)) if s]
        levels.append(
            replace(
                as_one((*inside, each)),
                group=-(-level.group // ranks),
                shared_bandwidth_bytes_s=min(limits, default=None),
            )
        )
        inside = []
    return replace(
        cluster,
        devices=cluster.devices[::ranks],
        levels=tuple(levels),
        ranks=Ranks(count=ranks, levels=cluster.levels),
    )
