"""How a fork may end when configurations differ: what stands behind it, and which stage reaches in from there."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench_graphpipe.mixed_configs import NEVER
from pipebench_graphpipe.mixed_solved import MixedSolved, MixedSolver, Seeds
from pipebench_graphpipe.mixed_tables import MixedStage, Table, Trees
from pipebench_graphpipe.space import PLAIN, Tail
from pipebench_graphpipe.stage_sets import tail_operators


@dataclass(frozen=True, slots=True)
class MixedClosing:
    """A tail; needs of what the other branches have behind them; what the owner leads, one row."""

    tail: Tail
    needs: IntArray
    lead: Table
    owner: MixedSolved | None


def closings(search: MixedSolver, solved: MixedSolved, position: int) -> Iterator[MixedClosing]:
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
    search: MixedSolver,
    solved: MixedSolved,
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


def _free(seeds: Seeds) -> Table:
    """Stages without a predecessor: they impose no need on what is in flight."""
    table = seeds.table()
    table.needs[:] = np.where(seeds.here[None] > 0, 0, NEVER)
    return table


def _behind(search: MixedSolver, solved: MixedSolved, position: int) -> Iterator[Seeds]:
    """What may stand behind a fork: the seeds, or stages that start there, by configuration and samples."""
    seeds = solved.seeds.one(position + 1)
    if seeds.here.any():
        yield seeds
    row = int(solved.chain.ends[position + 1])
    if position + 1 < solved.chain.length:
        for config in range(search.configs.count):
            front = search.configs.count + 1 + config
            kept, trees = solved.table.needs[front, row], solved.table.trees[front, row]
            yield from _each(search, config, kept[None], trees[None])


def _joining(search: MixedSolver, solved: MixedSolved, position: int, tail: Tail) -> Iterator[Seeds]:
    """Stages that start with a tail and go on behind the fork."""
    ends = range(tail.first_end, tail.last_end)
    for config in range(search.configs.count):
        started = [
            search.stage(solved, config, row, ends, partial(tail_operators, solved.chain, position, tail, start))
            for start, row in enumerate(tail.rows)
        ]
        kept = np.stack([each[0] for each in started])
        yield from _each(search, config, kept, np.stack([each[1] for each in started]))


def _beside(
    search: MixedSolver, solved: MixedSolved, position: int, tail: Tail, following: Seeds
) -> Iterator[Seeds]:
    """Stages of a tail that do not go on, with something behind them and the other branches."""
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


def _each(search: MixedSolver, config: int, kept: IntArray, trees: Trees) -> Iterator[Seeds]:
    """One for every number of samples that occurs; with fewer it may be done as well."""
    for samples in np.unique(kept[kept < NEVER]).tolist():
        yield Seeds(search.configs.needs(config, np.array(samples)), (kept <= samples).astype(np.int64), trees)
