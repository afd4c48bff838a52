"""Problems on few devices whose operators are joined to few blocks: of these the search looks at every plan."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from pipebench.algorithms.coarse import BLOCK, coarsen
from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.hooks.manager import Host
from pipebench_search import every_draft
from tests.contest.problems import Entry
from tests.nearness.distances import Distance
from tests.nearness.problems import TightGraph, beside_bounds, problems, searched
from tests.plugins.search.tight import tight

MOST_DEVICES = 5
MOST_LOOKED_AT = 3_000_000
"""Drafts, and beginnings of them: thirty times as many as a user's search looks at."""


@dataclass(frozen=True, slots=True)
class InBlocks:
    """A problem of `whole` in at most so many blocks. devices: of it."""

    whole: Entry | TightGraph
    blocks: int
    devices: int

    @property
    def mode(self) -> RegimeMode:
        return self.whole.mode

    @property
    def group(self) -> str:
        """By number of devices and of blocks."""
        kind = self.whole.group if isinstance(self.whole, Entry) else "tight graphs"
        return f"{kind} on {self.devices} in {self.blocks} blocks"

    @property
    def label(self) -> str:
        return f"{self.whole.label}, in {self.blocks} blocks"

    def problem(self, host: Host) -> Problem:
        """Its operators are the blocks. Raises InfeasibleProblem where no plan fits."""
        if isinstance(self.whole, TightGraph):
            number, mode = self.whole.number, self.whole.mode
            problem = tight(number, mode, operators=self.whole.operators, devices=self.whole.devices)
        else:
            problem = WorkloadBuilder(host).workload(self.whole.spec).problem(self.whole.mode)
        return of_plain_operators(coarsen(problem, self.blocks).problem)


def distance_in_blocks(host: Host, each: InBlocks) -> Distance:
    """The best plan beside the bound, both of the blocks."""
    every_draft.MOST_LOOKED_AT = MOST_LOOKED_AT
    problem = each.problem(host)
    found = beside_bounds((each.label, each.group, each.mode), problem, searched(problem))
    return structs.replace(found, optimal=found.optimal or found.best_ns == found.bound_ns)


def of_plain_operators(problem: Problem) -> Problem:
    """The same, of operators that are no blocks: nobody turns these plans back into the operators of blocks."""
    graph = problem.profile.graph
    plain = tuple(structs.replace(each, kind="op") if each.kind == BLOCK else each for each in graph.operators)
    profile = structs.replace(problem.profile, graph=structs.replace(graph, operators=plain))
    return structs.replace(problem, profile=profile)


def in_blocks(blocks: int, cells: int, graphs: int, seed: int) -> Iterator[InBlocks]:
    """Those that `problems` has with few devices and more operators, fewest devices first."""
    found = []
    for each in problems(cells, graphs, seed):
        if isinstance(each, TightGraph):
            found += [InBlocks(each, blocks, each.devices)] if each.operators > blocks else []
        elif each.spec.devices is not None and int(each.spec.devices) <= min(MOST_DEVICES, blocks):
            found.append(InBlocks(each, blocks, int(each.spec.devices)))
    yield from sorted(found, key=lambda each: each.devices)
