"""From a partition to a plan."""

from collections.abc import Sequence
from math import gcd

from pipebench.costs.placement import place
from pipebench.domain.plan import Plan, Stage
from pipebench_piper.figures import Figures
from pipebench_piper.search import Part, Partition


def plan_of(figures: Figures, partition: Partition) -> Plan:
    """Stages one after the other on consecutive devices.

    Replicas that take micro-batches in turn make a stage of larger micro-batches, one part for each replica;
    in flight is what Piper's memory counts, sum of the degrees from the stage on over its own, rounded up, and
    more where a stage behind would else wait for ever.
    """
    devices = place([part.way.devices for part in partition.parts], figures.problem.cluster.size)
    sizes = [part.way.samples * part.way.data_parallel for part in partition.parts]
    live = [-(-part.in_flight // part.way.share) for part in partition.parts]
    kept = without_deadlock(sizes, [count * size for count, size in zip(live, sizes, strict=True)])
    stages = tuple(
        _stage(figures, part, ids, size, samples)
        for part, ids, size, samples in zip(partition.parts, devices, sizes, kept, strict=True)
    )
    return Plan(stages=stages, order_edges=tuple((i, i + 1) for i in range(len(stages) - 1)))


def without_deadlock(micro_batch: Sequence[int], in_flight: Sequence[int]) -> list[int]:
    """In flight of a chain of stages, raised as little as lets every stage go on under 1F1B.

    Before the backward of its samples up to y (a multiple of its micro-batch b) a stage runs s + y - b samples
    forward. The next one, with b' and s', runs backward whole micro-batches only: it reaches y after samples up to
    ceil(y / b') b' - b' + s' forward, over all y at most y - gcd(b, b') + s'. Hence s >= s' + b - gcd(b, b').
    Piper rounds each stage's own count up to whole micro-batches, which this may pass: 1, 4, 1 replicas count 6, 8
    and 1.
    """
    kept = list(in_flight)
    for stage in reversed(range(len(kept) - 1)):
        size = micro_batch[stage]
        needed = kept[stage + 1] + size - gcd(size, micro_batch[stage + 1])
        kept[stage] = max(kept[stage], -(-needed // size) * size)
    return kept


def _stage(figures: Figures, part: Part, devices: tuple[int, ...], size: int, in_flight: int) -> Stage:
    operators = figures.problem.profile.graph.operators
    offered = figures.choices[part.way.tensor_parallel]
    chosen = [offered[node][position] for node, position in zip(part.operators, part.choice, strict=True)]
    choice = tuple("" if alternative is None else alternative.id for alternative in chosen)
    return Stage(
        operators=tuple(operators[node].name for node in part.operators),
        devices=devices,
        data_parallel=part.way.data_parallel,
        tensor_parallel=part.way.tensor_parallel,
        micro_batch=size,
        in_flight=min(in_flight, figures.problem.mini_batch),
        choice=choice if any(choice) else (),
    )
