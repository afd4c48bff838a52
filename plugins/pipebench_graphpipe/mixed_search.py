"""The search where every stage has its own micro-batch size and k: DP over chains and forks, bisection."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.assembly import Draft
from pipebench_graphpipe.mixed_configs import (
    NEVER,
    ChainNeeds,
    ChainNeedsSolver,
    Configs,
    MixedStage,
    NeedTable,
    Seeds,
    StageOperators,
    Trees,
    all_configs,
    merge_tables,
    rename_operators,
    stages_of,
)
from pipebench_graphpipe.search import WIDEST_TARGET, GraphPipeSearch
from pipebench_graphpipe.space import (
    PLAIN,
    Fork,
    Head,
    OperatorChain,
    Operators,
    Tail,
    left_out,
    stage_operators,
    tail_operators,
    whole,
)


@dataclass(frozen=True, slots=True)
class MixedClosing:
    """A tail, and what a fork needs with it.

    needs: of the fronts of the other branches.
    lead: what the owner leads, one row.
    owner: the owner's branch, with the tail as seeds.
    """

    tail: Tail
    needs: IntArray
    lead: NeedTable
    owner: ChainNeeds | None


def mixed_closings(search: ChainNeedsSolver, solved: ChainNeeds, position: int) -> Iterator[MixedClosing]:
    """Every closing of the fork at a position whose following rows are solved."""
    fork = solved.chain.forks[position]
    behind = list(_behind(search, solved, position))
    for following in behind:
        yield MixedClosing(PLAIN, following.needs, _free(following), None)
    for tail in fork.tails:
        if tail.joins:
            for started in _joining(search, solved, position, tail):
                yield _closing(search, solved, position, tail, started.needs, started)
            continue
        for following in behind:
            for started in _beside(search, solved, position, tail, following):
                yield _closing(search, solved, position, tail, following.needs, started)


def _closing(
    search: ChainNeedsSolver,
    solved: ChainNeeds,
    position: int,
    tail: Tail,
    needs: IntArray,
    started: Seeds,
) -> MixedClosing:
    if tail.owner is None:
        return MixedClosing(tail, needs, started.table(), None)
    ends_nowhere = np.zeros((1, started.here.shape[1]), np.int64)
    nothing = np.full(ends_nowhere.shape, None, object)
    seeds = Seeds(
        started.needs, np.concatenate((started.here, ends_nowhere)), np.concatenate((started.trees, nothing))
    )
    branch = solved.chain.forks[position].branches[tail.owner]
    owner = search.solve(branch.chain, seeds)
    return MixedClosing(tail, needs, owner.table.row(0), owner)


def _free(seeds: Seeds) -> NeedTable:
    """Stages without a predecessor: they impose no need on what is in flight."""
    table = seeds.table()
    table.needs[:] = np.where(seeds.here[None] > 0, 0, NEVER)
    return table


def _behind(search: ChainNeedsSolver, solved: ChainNeeds, position: int) -> Iterator[Seeds]:
    """The seeds behind a fork, or the stages that start there, by configuration and samples."""
    seeds = solved.seeds.one(position + 1)
    if seeds.here.any():
        yield seeds
    row = int(solved.chain.ends[position + 1])
    if position + 1 < solved.chain.length:
        for config in range(search.configs.count):
            front = search.configs.count + 1 + config
            kept, trees = solved.table.needs[front, row], solved.table.trees[front, row]
            yield from _each(search, config, kept[None], trees[None])


def _joining(search: ChainNeedsSolver, solved: ChainNeeds, position: int, tail: Tail) -> Iterator[Seeds]:
    """Stages that start with a tail and continue behind the fork."""
    ends = range(tail.first_end, tail.last_end)
    for config in range(search.configs.count):
        started = [
            search.stage(solved, config, row, ends, partial(tail_operators, solved.chain, position, tail, start))
            for start, row in enumerate(tail.rows)
        ]
        kept = np.stack([each[0] for each in started])
        yield from _each(search, config, kept, np.stack([each[1] for each in started]))


def _beside(
    search: ChainNeedsSolver, solved: ChainNeeds, position: int, tail: Tail, following: Seeds
) -> Iterator[Seeds]:
    """Stages of a tail that end with the fork, beside the other branches and in front of `following`."""
    end = int(solved.chain.ends[position + 1])
    width = following.here.shape[1]
    for config, costs in enumerate(search.configs.costs):
        samples = int(following.needs[config])
        if samples >= NEVER:
            continue
        here = np.zeros((len(tail.rows), width), np.int64)
        trees = np.full(here.shape, None, object)
        for start, row in enumerate(tail.rows):
            operators = tail_operators(solved.chain, position, tail, start, end)
            for choice, used in enumerate(costs.replicas):
                if samples > search.limits[config][row + end, choice]:
                    continue
                stage = MixedStage(operators, row + end, config, choice, samples)
                for devices in range(used, width):
                    if following.here[0, devices - used] and not here[start, devices]:
                        here[start, devices] = 1
                        trees[start, devices] = (stage, following.trees[0, devices - used])
        if here.any():
            yield Seeds(search.configs.needs(config, np.array(samples)), here, trees)


def _each(search: ChainNeedsSolver, config: int, kept: IntArray, trees: Trees) -> Iterator[Seeds]:
    """Seeds for every number of samples that occurs; each holds where fewer samples do."""
    for samples in np.unique(kept[kept < NEVER]).tolist():
        yield Seeds(search.configs.needs(config, np.array(samples)), (kept <= samples).astype(np.int64), trees)


class MixedFeasibility:
    """One question of feasibility.

    limits: for each configuration the most samples that a stage may keep, shape (slots, choices).
    """

    def __init__(self, configs: Configs, limits: list[IntArray], devices: int) -> None:
        self.configs, self.limits, self.devices = configs, limits, devices
        self.states = 0
        self._behind: dict[tuple[OperatorChain, bytes], ChainNeeds] = {}
        self._others: dict[tuple[Fork, frozenset[int], bytes], list[NeedTable]] = {}

    def stages(self, chain: OperatorChain) -> list[MixedStage] | None:
        """The stages of the whole chain; None where nothing fits."""
        solved = self.behind(chain, self.configs.nothing_behind())
        front = self.configs.count
        if solved.table.needs[front, 0, self.devices] >= NEVER:
            return None
        return stages_of(solved.table.trees[front, 0, self.devices])

    def behind(self, chain: OperatorChain, needs: IntArray) -> ChainNeeds:
        """Solve the chain in front of stages that put `needs` on its last stage."""
        key = chain, needs.tobytes()
        if key not in self._behind:
            here = np.zeros((chain.length + 1, self.devices + 1), np.int64)
            here[-1] = 1
            self._behind[key] = self.solve(chain, Seeds(needs, here, np.full(here.shape, None, object)))
        return self._behind[key]

    def solve(self, chain: OperatorChain, seeds: Seeds) -> ChainNeeds:
        """Solve the chain with those seeds."""
        table = NeedTable.empty(self.configs.fronts, chain.width, self.devices + 1)
        solved = ChainNeeds(chain, seeds, table)
        seeded = seeds.table()
        for position in range(chain.length, -1, -1):
            row = int(chain.ends[position])
            table.lower(row, seeded, position)
            if position == chain.length:
                continue
            if position in chain.forks:
                for closing in mixed_closings(self, solved, position):
                    self._open(solved, position, closing)
            self._extend(solved, position)
        self.states += table.needs.size
        return solved

    def stage(
        self, solved: ChainNeeds, config: int, row: int, ends: range, operators: StageOperators
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

    def _extend(self, solved: ChainNeeds, position: int) -> None:
        """Stages that start at an element."""
        chain = solved.chain
        row = int(chain.rows[position])
        ends = range(int(chain.ends[position + 1]), chain.width)
        for config in range(self.configs.count):
            kept, trees = self.stage(solved, config, row, ends, partial(stage_operators, chain, position))
            needs = self.configs.needs(config, kept)[:, None]
            found = NeedTable(needs, np.broadcast_to(trees, needs.shape))
            solved.table.lower(int(chain.ends[position]), found)

    def _open(self, solved: ChainNeeds, position: int, closing: MixedClosing) -> None:
        fork = solved.chain.forks[position]
        own = int(solved.chain.ends[position])
        solved.table.lower(own, merge_tables(closing.lead, self._rest(fork, closing)))
        for head in fork.agreeing[closing.tail]:
            rest = self._rest(fork, closing, head)
            for at, lead in enumerate(self._leads(fork, closing, head)):
                solved.table.lower(head.end + at, merge_tables(lead, rest))

    def _leads(self, fork: Fork, closing: MixedClosing, head: Head) -> list[NeedTable]:
        """For each end of a head: what the head leaves of its own branch, with what the closing leads."""
        if head.owner is None:
            return [closing.lead]
        if head.owner == closing.tail.owner:
            assert closing.owner is not None
            return [closing.owner.table.row(int(end)) for end in closing.owner.chain.ends[1:-1]]
        branch = fork.branches[head.owner]
        behind = self.behind(branch.chain, closing.needs)
        theirs = branch.chain.operators
        return [
            merge_tables(rename_operators(behind.table.row(int(end)), theirs, branch.operators), closing.lead)
            for end in behind.chain.ends[1:]
        ]

    def _rest(self, fork: Fork, closing: MixedClosing, head: Head | None = None) -> NeedTable:
        owners = left_out(closing.tail, head)
        listed, _ = fork.others[owners]
        absorbed = closing.tail.absorbed + (head.absorbed if head else 0)
        return self._side_by_side(fork, owners, closing.needs)[len(listed) - absorbed]

    def _side_by_side(self, fork: Fork, owners: frozenset[int], needs: IntArray) -> list[NeedTable]:
        """The heaviest branches without the owners, with `needs` behind them: none of them, one, two …"""
        key = fork, owners, needs.tobytes()
        if key not in self._others:
            listed, rows = fork.others[owners]
            none = NeedTable.empty(self.configs.fronts, 1, self.devices + 1)
            none.needs[:] = 0
            found = [none]
            for end in range(1, len(listed) + 1):
                branch = fork.branches[listed[end - 1]]
                alone = self.behind(branch.chain, needs).table.row(0)
                alone = rename_operators(alone, branch.chain.operators, branch.operators)
                together = merge_tables(alone, found[end - 1])
                for first in range(end - 1):
                    operators = whole(fork, listed[first:end])
                    run = self._one_stage(int(rows[first]) + end, operators, needs)
                    together.lower(0, merge_tables(run, found[first]))
                found.append(together)
            self._others[key] = found
        return self._others[key]

    def _one_stage(self, slot: int, operators: Operators, needs: IntArray) -> NeedTable:
        """One stage alone, between a front and the stages behind."""
        found = NeedTable.empty(self.configs.fronts, 1, self.devices + 1)
        for config, costs in enumerate(self.configs.costs):
            samples = int(needs[config])
            for choice, used in enumerate(costs.replicas):
                if used > self.devices or samples > self.limits[config][slot, choice]:
                    continue
                made = NeedTable.empty(self.configs.fronts, 1, self.devices + 1)
                made.needs[:, 0, used:] = self.configs.needs(config, np.array(samples))[:, None]
                for devices in range(used, self.devices + 1):
                    made.trees[:, 0, devices].fill(MixedStage(operators, slot, config, choice, samples))
                found.lower(0, made)
        return found


STEPS = 12
"""Bisection steps at most: the search is slow, and the plans are compared by simulation."""


def mixed_drafts(
    search: GraphPipeSearch, sizes: list[int], ks: list[int], memory_bytes: int
) -> Iterator[list[Draft]]:
    """Stages of the smallest time per sample among these sizes and ks, then those of relaxed targets.

    A stage does not know the buffers for messages of a neighbour's micro-batch size, so the plans have to be
    checked.
    """
    problem = search.problem
    costs = [search.costs(size) for size in sizes]
    configs = all_configs(costs, ks, problem.mini_batch)
    best = _within(search, configs, memory_bytes, None)
    if best is None:
        return
    low = 0.0
    for _ in range(STEPS):
        high = _sample_ns(configs, best)
        if high <= low * (1 + search.options.tolerance) or search.context.out_of_time():
            break
        target = (low * high) ** 0.5 if low else high / 2
        found = _within(search, configs, memory_bytes, target)
        if found is None:
            low = target
        else:
            best = found
    yield _drafts(configs, best)
    least, count = _sample_ns(configs, best), search.options.targets
    factors = (WIDEST_TARGET ** (number / count) for number in range(1, count))
    for factor in islice(factors, 0 if search.options.variant == "paper" else None):
        found = _within(search, configs, memory_bytes, least * factor)
        if found is not None:
            yield _drafts(configs, found)


def _within(
    search: GraphPipeSearch, configs: Configs, memory_bytes: int, sample_ns: float | None
) -> list[MixedStage] | None:
    question = MixedFeasibility(configs, configs.limits(memory_bytes, sample_ns), search.problem.cluster.size)
    found = question.stages(search.chain)
    search.context.count("mixed_calls")
    search.context.count("mixed_states", question.states)
    return found


def _sample_ns(configs: Configs, stages: list[MixedStage]) -> float:
    """Of the slowest stage."""
    return max(
        float(configs.costs[stage.config].period_ns[stage.slot, stage.choice])
        / configs.costs[stage.config].micro_batch
        for stage in stages
    )


def _drafts(configs: Configs, stages: list[MixedStage]) -> list[Draft]:
    return [
        Draft(
            stage.operators,
            configs.costs[stage.config].replicas[stage.choice],
            configs.costs[stage.config].micro_batch,
            configs.k[stage.config],
        )
        for stage in stages
    ]
