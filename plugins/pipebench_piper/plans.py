"""From a partition to a plan."""

from pipebench.costs.placement import place
from pipebench.domain.plan import Plan, Stage
from pipebench_piper.figures import Figures
from pipebench_piper.search import Part, Partition


def plan_of(figures: Figures, partition: Partition) -> Plan:
    """Stages one after the other on consecutive devices.

    Replicas that take micro-batches in turn make a stage of larger micro-batches, one part for each replica;
    in flight is what Piper's memory counts, sum of the degrees from the stage on over its own, rounded up.
    """
    devices = place([part.way.devices for part in partition.parts], figures.problem.cluster.size)
    stages = tuple(_stage(figures, part, ids) for part, ids in zip(partition.parts, devices, strict=True))
    return Plan(stages=stages, order_edges=tuple((i, i + 1) for i in range(len(stages) - 1)))


def _stage(figures: Figures, part: Part, devices: tuple[int, ...]) -> Stage:
    operators = figures.problem.profile.graph.operators
    offered = figures.choices[part.way.tensor_parallel]
    chosen = [offered[node][position] for node, position in zip(part.operators, part.choice, strict=True)]
    choice = tuple("" if alternative is None else alternative.id for alternative in chosen)
    size = part.way.samples * part.way.data_parallel
    live = -(-part.in_flight // part.way.share)
    return Stage(
        operators=tuple(operators[node].name for node in part.operators),
        devices=devices,
        data_parallel=part.way.data_parallel,
        tensor_parallel=part.way.tensor_parallel,
        micro_batch=size,
        in_flight=min(live * size, figures.problem.mini_batch),
        choice=choice if any(choice) else (),
    )
