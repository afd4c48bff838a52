"""The search at every micro-batch size of one problem, and which replicas it may use."""

import numpy as np

from pipebench.algorithms.coarse import COARSER
from pipebench.algorithms.micro_batches import (
    least_period_ns,
    micro_batch_candidates,
    near_profiled,
    replica_counts,
)
from pipebench.algorithms.planning import whole_stages
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.workload import pin_flag
from pipebench.hooks.context import Context
from pipebench_graphpipe.chain_dp import Depths
from pipebench_graphpipe.compiler import Compiler
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.program import graph_arrays
from pipebench_graphpipe.series_parallel import Decomposition, decompose
from pipebench_graphpipe.stage_costs import Size, StageCosts, columns_of, stage_costs
from pipebench_graphpipe.target_search import GraphPartition, TargetSearch


def refuse_unsupported(problem: Problem) -> None:
    """Raise UnsupportedProblem for a regime, a pin or a cluster that these plans cannot express."""
    pins = problem.pins
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("graphpipe plans for the sync regime only", "use regime sync")
    if (pins.tensor_parallel or 1) > 1:
        raise UnsupportedProblem(f"graphpipe has no tensor parallelism, {pins.tensor_parallel} is pinned")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"graphpipe has no virtual stages, {pins.virtual_stages} are pinned")
    if (pins.pipeline or 1) > 1:
        raise UnsupportedProblem(
            f"graphpipe chooses the number of stages, {pins.pipeline} are pinned",
            f"give {pin_flag('pipeline')} 1, or leave it out",
        )
    whole_stages(problem, "graphpipe")
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"graphpipe plans for devices of one type, these are {', '.join(kinds)}")


def all_counts(problem: Problem) -> tuple[int, ...]:
    """Numbers of replicas that some stage may have at some micro-batch, ascending."""
    pinned = problem.pins.data_parallel
    counts = replica_counts(problem.cluster.size) if pinned is None else (pinned,)
    return tuple(filter(problem.regime.shards_evenly, counts))


def replica_choices(problem: Problem, micro_batch: int) -> tuple[int, ...]:
    """Numbers of replicas for a stage, ascending; empty where the pinned one is too many.

    Powers of two and divisors of the number of devices that leave each replica at least one sample and, where
    there are any such, no more samples than were profiled.
    """
    most = min(problem.cluster.size, micro_batch)
    return near_profiled(problem, micro_batch, [count for count in all_counts(problem) if count <= most])


MOST_STAGES = 5_000_000
"""A larger space would not fit in memory."""
MOST_CELLS = 2**24
"""Sizes are measured together while their tables have no more figures than this."""
FEWEST_REPLICAS = (2, 4)
"""Variant best also looks for partitions all of whose stages have so many replicas."""
WIDEST_TARGET = 6.0
"""Relaxed targets go up to so many times the smallest."""


class GraphPipeSearch:
    """What does not depend on the memory limit: the decomposition, the space, the costs at each size.

    least_ns: for each micro-batch size the least ns of a mini-batch that any plan could take (proven), the most
    promising size first.
    """

    def __init__(self, problem: Problem, options: GraphPipeOptions, context: Context) -> None:
        self.problem, self.options, self.context = problem, options, context
        graph = problem.profile.graph
        model = CostModel(problem)
        self.decomposition: Decomposition = decompose(graph.successors)
        compiler = Compiler(graph, model.times.costs.operators, options.memo)
        self.chain = compiler.chain(self.decomposition.tree)
        self.slots = compiler.program.slots
        self.whole = int(self.chain.rows[0] + self.chain.ends[-1])
        self.recompute = whole_stages(problem, "graphpipe")
        context.count("stages_measured", self.slots)
        if self.slots > MOST_STAGES:
            raise UnsupportedProblem(
                f"graphpipe would have to choose from {self.slots} stages of {len(graph.operators)} operators, "
                f"it does at most {MOST_STAGES}",
                COARSER,
            )
        self._model = model
        self._program, self._arrays = compiler.program.arrays(), graph_arrays(graph)
        offered = micro_batch_candidates(problem, all_counts(problem))
        self._replicas = {size: counts for size in offered if (counts := replica_choices(problem, size))}
        by_bound = sorted(
            (self._micro_batches(size) * self._least_period_ns(size), size) for size in self._replicas
        )
        self.least_ns = {size: least for least, size in by_bound}
        self._measured: dict[int, StageCosts] = {}

    def costs(self, micro_batch: int) -> StageCosts:
        """The tables at a micro-batch size. They are large: only those that were measured together are kept."""
        if micro_batch not in self._measured:
            sizes: list[Size] = []
            ordered = list(self.least_ns)
            for size in ordered[ordered.index(micro_batch) :]:
                more = [*sizes, (size, self._replicas[size])]
                if sizes and self.slots * columns_of(more) > MOST_CELLS:
                    break
                sizes = more
            again = self.recompute == "stage"
            made = stage_costs(self._model, self._program, self.slots, self._arrays, sizes, again)
            self._measured = {costs.micro_batch: costs for costs in made}
        return self._measured[micro_batch]

    def smallest(self, micro_batch: int, memory_bytes: int) -> GraphPartition | None:
        """The partition of the smallest bottleneck; None when nothing fits."""
        search = self._target_search(micro_batch, memory_bytes)
        least_ns = self._least_period_ns(micro_batch)
        best = search.smallest(least_ns, self.options.tolerance, self.context.out_of_time)
        self._count(search)
        return best

    def near(self, best: GraphPartition, memory_bytes: int) -> list[GraphPartition]:
        """Other partitions at its size whose bottleneck is as small, within the option `near`."""
        search = self._target_search(best.costs.micro_batch, memory_bytes)
        found = search.near(best, self.options.near)
        self._count(search)
        return found

    def replicated_partitions(self, best: GraphPartition, memory_bytes: int) -> list[GraphPartition]:
        """The partitions of the smallest bottleneck at its size whose stages have at least 2, or 4, replicas.

        A large micro-batch on few replicas has a small bottleneck, and long stages to fill and drain.
        """
        costs, found = best.costs, list[GraphPartition]()
        live, devices = self._live(costs, memory_bytes), self.problem.cluster.size
        for fewest in FEWEST_REPLICAS:
            few = np.array(costs.replicas) < fewest
            if few.all() or not few.any():
                continue
            search = TargetSearch(self.chain, costs, np.where(few, 0, live).astype(np.int32), devices)
            least_ns = self._least_period_ns(costs.micro_batch)
            other = search.smallest(least_ns, self.options.tolerance, self.context.out_of_time)
            if other is not None and all(other.stages != known.stages for known in (best, *found)):
                found.append(other)
            self._count(search)
        return found

    def relaxed_partitions(self, best: GraphPartition, memory_bytes: int) -> list[GraphPartition]:
        """The partitions of relaxed targets at its size, as many as the option `targets` asks for."""
        search = self._target_search(best.costs.micro_batch, memory_bytes)
        found: list[GraphPartition] = []
        for number in range(1, self.options.targets):
            factor = WIDEST_TARGET ** (number / (self.options.targets - 1))
            within = search.within(int(best.bottleneck_ns * factor))
            if within is not None and all(within.partition.stages != other.stages for other in (best, *found)):
                found.append(within.partition)
        self._count(search)
        return found

    def smallest_memory(self, micro_batch: int, memory_bytes: int) -> int:
        """Bytes of device memory, at most 1 % above the least, that plans at a size need; more than given."""
        costs = self.costs(micro_batch)
        least, works = memory_bytes, int(costs.once_bytes[self.whole].min())
        works += int(costs.each_bytes[self.whole].max())
        while works - least > max(1, least // 100) and not self.context.out_of_time():
            middle = (least + works) // 2
            search = self._target_search(micro_batch, middle)
            if search.within(None) is None:
                least = middle
            else:
                works = middle
            self._count(search)
        return works

    def _target_search(self, micro_batch: int, memory_bytes: int) -> TargetSearch:
        costs = self.costs(micro_batch)
        live = self._live(costs, memory_bytes)
        return TargetSearch(self.chain, costs, live, self.problem.cluster.size)

    def _micro_batches(self, micro_batch: int) -> int:
        return self.problem.mini_batch // micro_batch

    def _least_period_ns(self, micro_batch: int) -> int:
        counts = self._replicas[micro_batch]
        return least_period_ns(self._model, micro_batch, counts, self.problem.cluster.size)

    def _live(self, costs: StageCosts, memory_bytes: int) -> Depths:
        live = costs.most_live(memory_bytes)
        if self.problem.pins.pipeline == 1:
            whole = np.zeros_like(live)
            whole[self.whole] = live[self.whole]
            return whole
        return live

    def _count(self, search: TargetSearch) -> None:
        self.context.count("feasibility_calls", search.calls)
        self.context.count("states", search.states)
        self.context.count("transitions", search.transitions)
