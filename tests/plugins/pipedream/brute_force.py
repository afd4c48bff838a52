"""Every plan of PipeDream's class on a tiny problem, costed one by one by the cost model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from pipebench.costs.formula import Formula, StageMemory
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import Cluster
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from tests.builders import cluster, dag_problem, stages_plan


def random_problem(
    seed: int, mode: RegimeMode, devices: int, micro_batch: int, chain: bool = False, on: Cluster | None = None
) -> Problem:
    """A graph of 3 to 6 operators with skips and shared tensors, a mini-batch of 2 micro-batches."""
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 7))
    tensors: list[tuple[int, Sequence[int], int]] = []
    for producer in range(count - 1):
        readers = [producer + 1] if chain or random.random() < 0.8 else []
        if not chain:
            readers += [r for r in range(producer + 2, count) if random.random() < 0.3]
        if readers:
            tensors.append((producer, readers, int(random.integers(0, 30))))
    return dag_problem(
        random.integers(1, 40, count).tolist(),
        random.integers(1, 80, count).tolist(),
        tensors,
        on or cluster(devices, latency_s=2e-9, bandwidth=0.7e9),
        weights=random.integers(0, 60, count).tolist(),
        saved=random.integers(0, 40, count).tolist(),
        mode=mode,
        mini_batch=2 * micro_batch,
        micro_batches=(micro_batch,),
    )


@dataclass(frozen=True)
class Costed:
    """A plan's bottleneck in ns and peak memory in bytes under PipeDream's estimates."""

    ends: tuple[int, ...]
    replicas: tuple[int, ...]
    bottleneck_ns: int
    peak_bytes: int


def every_plan(
    problem: Problem, order: Sequence[int], counts: Sequence[int], micro_batch: int
) -> Iterator[Costed]:
    """All consecutive partitions of the order, with all replica counts of `counts` that fit the devices."""
    places, devices = len(order), problem.cluster.size
    for stages in range(1, min(places, devices) + 1):
        for cuts in combinations(range(1, places), stages - 1):
            ends = (*cuts, places)
            groups = [order[a:b] for a, b in zip((0, *cuts), ends, strict=True)]
            for replicas in product(counts, repeat=stages):
                if sum(replicas) <= devices:
                    bottleneck, peak = cost(problem, groups, replicas, micro_batch)
                    yield Costed(ends, replicas, bottleneck, peak)


def cost(
    problem: Problem, groups: Sequence[Sequence[int]], replicas: Sequence[int], micro_batch: int
) -> tuple[int, int]:
    """Bottleneck and peak memory of one plan."""
    micro_batches = problem.mini_batch // micro_batch
    periods, peaks = [], []
    for position, (period, memory) in enumerate(stage_costs(problem, groups, replicas, micro_batch)):
        live = min(len(groups) - position, micro_batches)
        if problem.regime.mode == "async":
            live = -(-sum(replicas[position:]) // replicas[position])
        periods.append(period)
        peaks.append(memory.peak(live))
    return max(periods), max(peaks)


def stage_costs(
    problem: Problem, groups: Sequence[Sequence[int]], replicas: Sequence[int], micro_batch: int
) -> list[tuple[int, StageMemory]]:
    """Period in ns and memory of each stage, from the cost model's figures for stages and messages.

    async: the larger of the stage and its two cuts. sync: the stage and what leaves it, at its own replicas.
    """
    model = CostModel(problem)
    sync = problem.regime.mode == "sync"
    plan = stages_plan(groups, micro_batch=micro_batch, replicas=replicas)
    if not sync:
        plan = Plan(stages=plan.stages, routing="relay")
    edges = model.messages(plan)
    found = []
    for position, stage in enumerate(plan.stages):
        times = model.stage_times(stage)
        period = times.period - (-times.all_reduce * micro_batch // problem.mini_batch)
        if sync:
            for tensor in {edge.tensor for edge in edges if edge.source == position}:
                for sent in (model.tensor_bytes(tensor, micro_batch), model.gradient_bytes(tensor, micro_batch)):
                    d = stage.data_parallel
                    period += Formula.message_ns(problem.cluster.levels[0], sent, d, d)
        else:
            for source in (position - 1, position):
                crossing = [edge for edge in edges if edge.source == source]
                both = [model.message_ns(plan, e) + model.message_ns(plan, e, backward=True) for e in crossing]
                period = max(period, sum(both))
        found.append((period, model.stage_memory(plan, position, edges)))
    return found
