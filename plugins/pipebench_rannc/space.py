"""What rannc may choose on a problem: nodes, copies, micro-batches, replicas; and what it has to refuse."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.algorithms.micro_batches import MOST_STEPS, divisors, honours_size, near_profiled
from pipebench.algorithms.planning import whole_stages
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem


@dataclass(frozen=True, slots=True)
class PipelineCopies:
    """How devices are divided among copies of the pipeline.

    nodes: n of Algorithm 2.
    devices: D, those of one copy.
    copies: R.
    """

    nodes: int
    devices: int
    copies: int


@dataclass(frozen=True, slots=True)
class MicroBatchFlow:
    """How one copy divides its share of the mini-batch.

    micro_batches: how often a copy runs for one update.
    micro_batch: samples of one copy at once.
    """

    shape: PipelineCopies
    micro_batches: int
    micro_batch: int


def refuse_unsupported(problem: Problem) -> None:
    """Raise UnsupportedProblem for a regime, a pin or a cluster that these plans cannot express."""
    pins = problem.pins
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("rannc plans for the sync regime only", "use regime sync")
    if (pins.tensor_parallel or 1) > 1:
        raise UnsupportedProblem(f"rannc has no tensor parallelism, {pins.tensor_parallel} is pinned")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"rannc has no virtual stages, {pins.virtual_stages} are pinned")
    whole_stages(problem, "rannc")
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"rannc plans for devices of one type, these are {', '.join(kinds)}")


def node_size(problem: Problem) -> int:
    """Devices of a node: of the innermost group that the devices fill evenly, else all devices."""
    cluster = problem.cluster
    inner = cluster.levels[0].group
    return inner if inner < cluster.size and cluster.size % inner == 0 else cluster.size


def shapes(problem: Problem, doubling: bool) -> Iterator[PipelineCopies]:
    """Numbers of nodes for a copy of the pipeline, ascending: 1, 2, 4, … or the divisors.

    The number of copies must divide the mini-batch.
    """
    each = node_size(problem)
    nodes = problem.cluster.size // each
    counts = [2**power for power in range(nodes.bit_length())] if doubling else divisors(nodes, nodes)
    for count in counts:
        if count <= nodes and problem.mini_batch % (nodes // count) == 0:
            yield PipelineCopies(count, each * count, nodes // count)


def flows(problem: Problem, shape: PipelineCopies, doubling: bool, most: int = 0) -> Iterator[MicroBatchFlow]:
    """Numbers of micro-batches, ascending: powers of two or divisors of a copy's samples, at most `most` of them.

    With a pinned micro-batch there is one. With pinned samples of one replica, those that some replicas share so.
    """
    samples, pinned = problem.mini_batch // shape.copies, problem.pins.micro_batch
    each = problem.pins.micro_batch_size or 1
    if pinned is not None:
        if samples % pinned == 0:
            yield MicroBatchFlow(shape, samples // pinned, pinned)
        return
    limit = min(samples, most or samples, max(1, MOST_STEPS // problem.cluster.size))
    for count in divisors(samples, limit):
        if samples // count % each or (problem.pins.micro_batch_size and samples // count // each > shape.devices):
            continue
        if not doubling or count & (count - 1) == 0:
            yield MicroBatchFlow(shape, count, samples // count)


def replica_choices(problem: Problem, flow: MicroBatchFlow, powers: bool) -> tuple[int, ...]:
    """Numbers of replicas of a stage, ascending. Each replica has at least one sample, and no more than were
    profiled.
    """
    pinned, copies = problem.pins.data_parallel, flow.shape.copies
    most = min(flow.shape.devices, flow.micro_batch)
    if pinned is not None:
        each, rest = divmod(pinned, copies)
        goes = rest == 0 and 1 <= each <= most and honours_size(problem, flow.micro_batch, each)
        return (each,) if goes else ()
    counts = [count for count in range(1, most + 1) if not powers or count & (count - 1) == 0]
    counts = [count for count in counts if problem.regime.shards_evenly(count * copies)]
    return near_profiled(problem, flow.micro_batch, counts)


def stage_counts(problem: Problem, shape: PipelineCopies, blocks: int) -> range:
    """Numbers of stages that there can be at all, or the pinned one."""
    most = min(shape.devices, blocks)
    pinned = problem.pins.pipeline
    if pinned is None:
        return range(1, most + 1)
    return range(pinned, pinned + 1) if pinned <= most else range(0)
