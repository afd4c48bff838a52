"""The search at every micro-batch size of one problem."""

from dataclasses import dataclass

import numpy as np

from pipebench.algorithms.chain_dp import Depths
from pipebench.algorithms.micro_batches import micro_batch_candidates
from pipebench.algorithms.series_parallel import Decomposition, decompose
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe.compiler import Compiler
from pipebench_graphpipe.measure import graph_arrays
from pipebench_graphpipe.pins import replica_choices
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_graphpipe.stage_costs import StageCosts, stage_costs
from pipebench_graphpipe.target_search import Partition, TargetSearch, least_period_ns

MOST_STAGES = 5_000_000
"""A larger space would not fit in memory."""
WIDEST_TARGET = 6.0
"""Relaxed targets go up to so many times the smallest."""


@dataclass(frozen=True, slots=True)
class Size:
    """A micro-batch size with its tables and a proven least period."""

    costs: StageCosts
    least_ns: int


class Search:
    """What does not depend on the memory limit: the decomposition, the space, the costs at each size."""

    def __init__(self, problem: Problem, options: GraphPipeOptions, context: Context) -> None:
        self.problem, self.options, self.context = problem, options, context
        graph = problem.profile.graph
        model = CostModel(problem)
        self.decomposition: Decomposition = decompose(graph.successors)
        compiler = Compiler(graph, model.times.costs.operators, options.memo)
        self.chain = compiler.chain(self.decomposition.tree)
        self.slots = compiler.program.slots
        self.whole = int(self.chain.rows[0] + self.chain.ends[-1])
        self.recompute = problem.pins.recompute or "none"
        context.count("stages_measured", self.slots)
        if self.slots > MOST_STAGES:
            raise UnsupportedProblem(
                f"graphpipe would have to choose from {self.slots} stages of {len(graph.operators)} operators, "
                f"it does at most {MOST_STAGES}",
                "group operators into larger ones",
            )
        self._model = model
        self._program, self._arrays = compiler.program.arrays(), graph_arrays(graph)
        self.micro_batches = [size for size in micro_batch_candidates(problem) if replica_choices(problem, size)]

    def size(self, micro_batch: int) -> Size:
        """The tables at a micro-batch size. They are large, so none are kept."""
        replicas = replica_choices(self.problem, micro_batch)
        again = self.recompute == "stage"
        costs = stage_costs(self._model, self._program, self.slots, self._arrays, micro_batch, replicas, again)
        return Size(costs, least_period_ns(self._model, micro_batch, replicas, self.problem.cluster.size))

    def partitions(self, size: Size, memory_bytes: int) -> list[Partition]:
        """The partition of the smallest bottleneck, and those of relaxed targets; empty when nothing fits."""
        search = TargetSearch(self.chain, size.costs, self._live(size, memory_bytes), self.problem.cluster.size)
        best = search.smallest(size.least_ns, self.options.tolerance, self.context.out_of_time)
        found = [] if best is None else [best]
        if best is not None:
            for number in range(1, self.options.targets):
                factor = WIDEST_TARGET ** (number / (self.options.targets - 1))
                relaxed = search.within(int(best.bottleneck_ns * factor))
                if relaxed is not None and all(relaxed.stages != other.stages for other in found):
                    found.append(relaxed)
        self._count(search)
        return found

    def smallest_memory(self, size: Size, memory_bytes: int) -> int:
        """Bytes of device memory, at most 1 % above the least, that plans at a size need; more than given."""
        least, works = memory_bytes, int(size.costs.once_bytes[self.whole].min())
        works += int(size.costs.each_bytes[self.whole].max())
        while works - least > max(1, least // 100) and not self.context.out_of_time():
            middle = (least + works) // 2
            search = TargetSearch(self.chain, size.costs, self._live(size, middle), self.problem.cluster.size)
            if search.within(None) is None:
                least = middle
            else:
                works = middle
            self._count(search)
        return works

    def _live(self, size: Size, memory_bytes: int) -> Depths:
        live = size.costs.most_live(memory_bytes)
        if self.problem.pins.pipeline == 1:
            whole = np.zeros_like(live)
            whole[self.whole] = live[self.whole]
            return whole
        return live

    def _count(self, search: TargetSearch) -> None:
        self.context.count("feasibility_calls", search.calls)
        self.context.count("states", search.states)
        self.context.count("transitions", search.transitions)
