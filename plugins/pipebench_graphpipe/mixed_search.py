"""The DP over chains and forks where every stage has its own micro-batch size and k.

As feasibility.Feasibility, but the value of a state is kept for every configuration that may stand in front:
branches that meet the same stage ask it for in-flight of its own size, and the one that asks most decides.
Source: GraphPipe section 5 (source and sink configurations of a subproblem), reconstructed.
"""

from functools import partial

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.mixed_closings import MixedClosing, closings
from pipebench_graphpipe.mixed_configs import NEVER, Configs
from pipebench_graphpipe.mixed_solved import MixedSolved, Seeds, StageOperators
from pipebench_graphpipe.mixed_tables import MixedStage, Table, Trees, merged, renamed, stages_of
from pipebench_graphpipe.space import Chain, Fork, Head, Operators, left_out
from pipebench_graphpipe.stage_sets import stage_operators, whole


class MixedFeasibility:
    """One question. limits: for each configuration the most samples that a stage may keep, (slots, choices)."""

    def __init__(self, configs: Configs, limits: list[IntArray], devices: int) -> None:
        self.configs, self.limits, self.devices = configs, limits, devices
        self.states = 0
        self._behind: dict[tuple[Chain, bytes], MixedSolved] = {}
        self._others: dict[tuple[Fork, frozenset[int], bytes], list[Table]] = {}

    def stages(self, chain: Chain) -> list[MixedStage] | None:
        """Stages for the whole chain; None where nothing fits."""
        solved = self.behind(chain, self.configs.nothing_behind())
        front = self.configs.count
        if solved.table.needs[front, 0, self.devices] >= NEVER:
            return None
        return stages_of(solved.table.trees[front, 0, self.devices])

    def behind(self, chain: Chain, needs: IntArray) -> MixedSolved:
        """The chain with what asks `needs` of its last stage behind it."""
        key = chain, needs.tobytes()
        if key not in self._behind:
            here = np.zeros((chain.length + 1, self.devices + 1), np.int64)
            here[-1] = 1
            self._behind[key] = self.solve(chain, Seeds(needs, here, np.full(here.shape, None, object)))
        return self._behind[key]

    def solve(self, chain: Chain, seeds: Seeds) -> MixedSolved:
        """The chain with those seeds."""
        table = Table.empty(self.configs.fronts, chain.width, self.devices + 1)
        solved = MixedSolved(chain, seeds, table)
        seeded = seeds.table()
        for position in range(chain.length, -1, -1):
            row = int(chain.ends[position])
            table.lower(row, seeded, position)
            if position == chain.length:
                continue
            if position in chain.forks:
                for closing in closings(self, solved, position):
                    self._open(solved, position, closing)
            self._extend(solved, position)
        self.states += table.needs.size
        return solved

    def stage(
        self, solved: MixedSolved, config: int, row: int, ends: range, operators: StageOperators
    ) -> tuple[IntArray, Trees]:
        """Least samples of a stage of a configuration that ends before one of the rows, by devices."""
        width = self.devices + 1
        best = np.full(width, NEVER, np.int64)
        trees = np.full(width, None, object)
        behind = solved.table.needs[config, ends.start : ends.stop]
        limits = self.limits[config][row + ends.start : row + ends.stop]
        for choice, used in enumerate(self.configs.costs[config].replicas):
            if used >= width:
                break
            asked = behind[:, : width - used]
            asked = np.where(asked <= limits[:, choice, None], asked, NEVER)
            at = asked.argmin(axis=0)
            least = asked[at, np.arange(width - used)]
            for devices in np.flatnonzero(least < best[used:]).tolist():
                end = ends.start + int(at[devices])
                samples = int(least[devices])
                made = MixedStage(operators(end), row + end, config, choice, samples)
                best[used + devices] = samples
                trees[used + devices] = (made, solved.table.trees[config, end, devices])
        return best, trees

    def _extend(self, solved: MixedSolved, position: int) -> None:
        """Stages that start at an element."""
        chain = solved.chain
        row = int(chain.rows[position])
        ends = range(int(chain.ends[position + 1]), chain.width)
        for config in range(self.configs.count):
            kept, trees = self.stage(solved, config, row, ends, partial(stage_operators, chain, position))
            needs = self.configs.needs(config, kept)[:, None]
            found = Table(needs, np.broadcast_to(trees, needs.shape))
            solved.table.lower(int(chain.ends[position]), found)

    def _open(self, solved: MixedSolved, position: int, closing: MixedClosing) -> None:
        fork = solved.chain.forks[position]
        own = int(solved.chain.ends[position])
        solved.table.lower(own, merged(closing.lead, self._rest(fork, closing)))
        for head in fork.agreeing[closing.tail]:
            rest = self._rest(fork, closing, head)
            for at, lead in enumerate(self._leads(fork, closing, head)):
                solved.table.lower(head.end + at, merged(lead, rest))

    def _leads(self, fork: Fork, closing: MixedClosing, head: Head) -> list[Table]:
        """Of the parts that a head leaves, its own branch and what the closing leads; for each of its ends."""
        if head.owner is None:
            return [closing.lead]
        if head.owner == closing.tail.owner:
            assert closing.owner is not None
            return [closing.owner.table.row(int(end)) for end in closing.owner.chain.ends[1:-1]]
        branch = fork.branches[head.owner]
        behind = self.behind(branch.chain, closing.needs)
        theirs = branch.chain.operators
        return [
            merged(renamed(behind.table.row(int(end)), theirs, branch.operators), closing.lead)
            for end in behind.chain.ends[1:]
        ]

    def _rest(self, fork: Fork, closing: MixedClosing, head: Head | None = None) -> Table:
        owners = left_out(closing.tail, head)
        listed, _ = fork.others[owners]
        absorbed = closing.tail.absorbed + (head.absorbed if head else 0)
        return self._side_by_side(fork, owners, closing.needs)[len(listed) - absorbed]

    def _side_by_side(self, fork: Fork, owners: frozenset[int], needs: IntArray) -> list[Table]:
        """The heaviest branches but the owners, `needs` behind them: none of them, one, two …"""
        key = fork, owners, needs.tobytes()
        if key not in self._others:
            listed, rows = fork.others[owners]
            none = Table.empty(self.configs.fronts, 1, self.devices + 1)
            none.needs[:] = 0
            found = [none]
            for end in range(1, len(listed) + 1):
                branch = fork.branches[listed[end - 1]]
                alone = self.behind(branch.chain, needs).table.row(0)
                alone = renamed(alone, branch.chain.operators, branch.operators)
                together = merged(alone, found[end - 1])
                for first in range(end - 1):
                    operators = whole(fork, listed[first:end])
                    run = self._one_stage(int(rows[first]) + end, operators, needs)
                    together.lower(0, merged(run, found[first]))
                found.append(together)
            self._others[key] = found
        return self._others[key]

    def _one_stage(self, slot: int, operators: Operators, needs: IntArray) -> Table:
        """One stage alone between a front and what is behind."""
        found = Table.empty(self.configs.fronts, 1, self.devices + 1)
        for config, costs in enumerate(self.configs.costs):
            samples = int(needs[config])
            for choice, used in enumerate(costs.replicas):
                if used > self.devices or samples > self.limits[config][slot, choice]:
                    continue
                made = Table.empty(self.configs.fronts, 1, self.devices + 1)
                made.needs[:, 0, used:] = self.configs.needs(config, np.array(samples))[:, None]
                for devices in range(used, self.devices + 1):
                    made.trees[:, 0, devices].fill(MixedStage(operators, slot, config, choice, samples))
                found.lower(0, made)
        return found
