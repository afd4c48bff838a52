"""Every plan of PipeDream's class on a tiny problem, costed one by one by the cost model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import ceil, lcm

import numpy as np
from msgspec.structs import replace

from pipebench.costs.formula import Formula, StageMemory
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import Cluster
from pipebench.domain.plan import Plan, ReplicaMode
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
    problem: Problem, order: Sequence[int], counts: Sequence[int], micro_batch: int, mode: ReplicaMode
) -> Iterator[Costed]:
    """All consecutive partitions of the order, with all replica counts of `counts` that fit the devices."""
    places, devices = len(order), problem.cluster.size
    for stages in range(1, min(places, devices) + 1):
        for cuts in combinations(range(1, places), stages - 1):
            ends = (*cuts, places)
            groups = [order[a:b] for a, b in zip((0, *cuts), ends, strict=True)]
            for replicas in product(counts, repeat=stages):
                if sum(replicas) <= devices:
                    bottleneck, peak = cost(problem, groups, replicas, micro_batch, mode)
                    yield Costed(ends, replicas, bottleneck, peak)


def cost(
    problem: Problem, groups: Sequence[Sequence[int]], replicas: Sequence[int], micro_batch: int, mode: ReplicaMode
) -> tuple[int, int]:
    """Bottleneck and peak memory of one plan."""
    micro_batches = problem.mini_batch // micro_batch
    found = stage_costs(problem, groups, replicas, micro_batch, mode)
    sync = problem.regime.mode == "sync"
    peaks = []
    for position, memory in enumerate(found.memory):
        live = -(-sum(replicas[position:]) // replicas[position])
        if sync and mode == "round_robin":
            live = min(live, len(range(0, micro_batches, replicas[position])))
        elif sync:
            live = min(len(groups) - position, micro_batches)
        peaks.append(memory.peak(live))
    return found.bottleneck_ns, max(peaks)


@dataclass(frozen=True)
class PlanCosts:
    """Periods of the stages of a plan and of the cuts in front of them in ns, and the memory of the stages."""

    periods: list[int]
    cuts: list[int]
    memory: list[StageMemory]

    @property
    def bottleneck_ns(self) -> int:
        return max(*self.periods, *self.cuts, 0)


def stage_costs(
    problem: Problem, groups: Sequence[Sequence[int]], replicas: Sequence[int], micro_batch: int, mode: ReplicaMode
) -> PlanCosts:
    """Stages and cuts from the cost model's figures for the plan's stages and messages.

    async: a device, and the link between two replicas both ways, is busy with one of so many micro-batches.
    sync: the stage and what leaves it, at its own replicas.
    """
    model = CostModel(problem)
    sync = problem.regime.mode == "sync"
    plan = in_mode(stages_plan(groups, micro_batch=micro_batch, replicas=replicas), mode)
    if not sync:
        plan = replace(plan, routing="relay")
    edges = model.messages(plan)
    periods = []
    for position, stage in enumerate(plan.stages):
        times = model.stage_times(stage)
        # In sync the update is a task of a replica, in which it runs as many micro-batches as it has turns.
        busy = times.period - (-times.all_reduce * micro_batch * stage.turns // problem.mini_batch)
        if sync:
            for tensor in {edge.tensor for edge in edges if edge.source == position}:
                for sent in (model.tensor_bytes(tensor, micro_batch), model.gradient_bytes(tensor, micro_batch)):
                    busy += Formula.message_ns(problem.cluster.levels[0], sent, stage.sharers, stage.sharers)
        periods.append(ceil(Fraction(busy, stage.turns)))
    cuts = [0] * len(groups)
    if not sync:
        loads: dict[tuple[int, int], Fraction] = {}
        for edge in edges:
            turns = lcm(plan.stages[edge.source].turns, plan.stages[edge.target].turns)
            for turn, backward in product(range(turns), (False, True)):
                key = edge.target, turn
                taken = Fraction(model.message_ns(plan, edge, backward, turn), turns)
                loads[key] = loads.get(key, Fraction(0)) + taken
        for (behind, _), load in loads.items():
            cuts[behind] = max(cuts[behind], ceil(load))
    memory = [model.stage_memory(plan, position, edges) for position in range(len(groups))]
    return PlanCosts(periods, cuts, memory)


def in_mode(plan: Plan, mode: ReplicaMode) -> Plan:
    """The plan with replicas that share micro-batches so."""
    return replace(plan, stages=tuple(replace(stage, replicas=mode) for stage in plan.stages))
