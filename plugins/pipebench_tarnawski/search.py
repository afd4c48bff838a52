"""The smallest largest load: bisection on a target, each answered by the kernel."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pipebench.algorithms.bottleneck import narrow_bottleneck
from pipebench.algorithms.downset_table import cut_edges, downset_sums, downset_table, node_sets
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench_tarnawski.kernel import ON_ACCELERATOR, ON_CPU, LoadTables, MemoryTables, load_between, reach
from pipebench_tarnawski.node_costs import NodeCosts

ANY = 1e200
COUNTERS = ("pairs", "transitions")


@dataclass(frozen=True, slots=True)
class Load:
    """What one device holds: operators (positions, ascending), whether it is a CPU, seconds of a micro-batch."""

    operators: tuple[int, ...]
    cpu: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class LoadSplit:
    """Loads in topological order. stopped: out of time."""

    loads: tuple[Load, ...]
    seconds: float
    stopped: bool


class LoadSearch:
    """The downsets of one problem. linear: cut one order of the nodes only.

    Raises UnsupportedProblem, with `hint`, when there are more than `most` downsets.
    """

    def __init__(self, figures: NodeCosts, linear: bool, most: int, hint: str) -> None:
        self.figures = figures
        before = _reverse(_chain(figures.successors) if linear else figures.successors)
        rows = downset_table(before, most, hint)
        sums = downset_sums(
            rows,
            np.stack(
                [
                    figures.latency,
                    figures.cpu_latency,
                    np.minimum(figures.latency, figures.cpu_latency),
                    figures.foreign,
                    np.ones(len(figures.members)),
                ]
            ),
        )
        order = np.lexsort((sums[4], sums[0]))
        rows = np.ascontiguousarray(rows[order])
        sums = np.ascontiguousarray(sums[:, order])
        edges = node_sets(list(figures.outputs), len(figures.members))
        values = np.array(list(figures.outputs.values()))
        cut = cut_edges(rows, edges)
        self.downsets = len(rows)
        self.counters: IntArray = np.zeros(len(COUNTERS), np.int64)
        self.tables = LoadTables(
            rows=rows,
            cut=cut,
            edges=edges,
            values=values,
            cut_sums=downset_sums(cut, values[None, :])[0] if len(values) else np.zeros(len(rows)),
            load=sums[0],
            cpu_load=sums[1],
            least=sums[2],
            foreign=sums[3],
            by_cpu=np.lexsort((sums[4], sums[1])),
        )

    def best(
        self,
        accelerators: int,
        cpus: int,
        memory: MemoryTables,
        limits: tuple[float, float],
        out_of_time: Callable[[], bool],
    ) -> LoadSplit | None:
        """The split of the smallest largest load; None where none fits. limits: of a CPU, of an accelerator."""
        used = np.empty((cpus + 1, self.downsets), np.int64)
        link = np.zeros((cpus + 1, self.downsets, 2), np.int64)
        bytes_each: FloatArray = np.array(limits, np.float64)

        def below(target: float) -> tuple[Load, ...] | None:
            here = reach(self.tables, memory, target, bytes_each, accelerators, used, link, self.counters)
            return self._loads(link, int(here)) if here >= 0 else None

        figures = self.figures
        fastest: FloatArray = np.where(figures.foreign > 0, np.inf, figures.latency)
        fastest = np.minimum(fastest, figures.cpu_latency)
        low = max(float(fastest.sum()) / (accelerators + cpus), float(fastest.max(initial=0.0))) * (1 - 1e-6)
        loads, target = None, low
        for _ in range(12):
            target *= 1.1
            loads = below(target) if np.isfinite(target) else None
            if loads is not None or target == 0:
                break
        loads = loads or below(ANY)
        if loads is None:
            return None
        found = narrow_bottleneck(loads, low, below, _largest, out_of_time)
        return LoadSplit(found.best, _largest(found.best), found.stopped)

    def _loads(self, link: IntArray, here: int) -> tuple[Load, ...]:
        at = self.downsets - 1
        loads = []
        while at > 0:
            behind, kind = (int(value) for value in link[here, at])
            seconds = (
                load_between(self.tables, at, behind)
                if kind == ON_ACCELERATOR
                else self.tables.cpu_load[at] - self.tables.cpu_load[behind]
            )
            loads.append(Load(self._between(at, behind), kind == ON_CPU, float(seconds)))
            here -= kind == ON_CPU
            at = behind
        return tuple(loads)

    def _between(self, large: int, small: int) -> tuple[int, ...]:
        rows = self.tables.rows
        held = [
            node
            for node in range(len(self.figures.members))
            if int(rows[large, node // 64] & ~rows[small, node // 64]) >> node % 64 & 1
        ]
        return tuple(sorted(operator for node in held for operator in self.figures.members[node]))


def _largest(loads: tuple[Load, ...]) -> float:
    return max(load.seconds for load in loads)


def _reverse(successors: list[list[int]]) -> list[list[int]]:
    before: list[list[int]] = [[] for _ in successors]
    for node, after in enumerate(successors):
        for each in after:
            before[each].append(node)
    return before


def _chain(successors: list[list[int]]) -> list[list[int]]:
    """The graph with its depth first order as a chain: what was ready last comes next."""
    waiting = [0] * len(successors)
    for later in successors:
        for each in later:
            waiting[each] += 1
    ready = [node for node, count in enumerate(waiting) if count == 0]
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        for each in successors[node]:
            waiting[each] -= 1
            if waiting[each] == 0:
                ready.append(each)
    after: list[list[int]] = [[] for _ in successors]
    for first, second in pairwise(order):
        after[first].append(second)
    return after
