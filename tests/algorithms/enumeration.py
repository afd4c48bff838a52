"""Oracles in plain Python: every partition of a chain, and MadPipe's recursion as printed (corrected)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, pairwise


@dataclass(frozen=True)
class Figures:
    """A chain in MadPipe's notation, layers 1 … L. work u, weights W, saved s (each indexed from 0 = layer 1);
    held a_0 … a_L for buffers; cut C(0) … C(L), both ways.
    """

    work: tuple[int, ...]
    weights: tuple[int, ...]
    saved: tuple[int, ...]
    held: tuple[int, ...]
    cut: tuple[int, ...]

    @property
    def length(self) -> int:
        return len(self.work)

    def load(self, k: int, last: int) -> int:
        return sum(self.work[k - 1 : last])

    def memory(self, k: int, last: int, g: int) -> int:
        """M(k, l, g) of MadPipe section 4.2.1 with l = last."""
        inside = sum(
            3 * w + g * s for w, s in zip(self.weights[k - 1 : last], self.saved[k - 1 : last], strict=True)
        )
        return inside + 2 * self.held[k - 1] * (k > 1) + 2 * self.held[last] * (last < self.length)


def figures(
    forward: Sequence[int],
    backward: Sequence[int],
    weights: Sequence[int],
    activations: Sequence[int],
    one_way: Sequence[int],
) -> Figures:
    """From the columns of notes/madpipe.md, section 9."""
    work = tuple(f + b for f, b in zip(forward, backward, strict=True))
    return Figures(
        work, tuple(weights), tuple(activations[:-1]), tuple(activations), tuple(2 * c for c in one_way)
    )


def all_bounds(length: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every partition of `length` layers into at most `most` runs."""
    for stages in range(1, min(length, most) + 1):
        for inner in combinations(range(1, length), stages - 1):
            yield (0, *inner, length)


def greedy_groups(items: Sequence[int], period: int) -> list[int]:
    """Groups by the prose of MadPipe section 4.1: add items from the end as long as they fit."""
    found: list[int] = []
    group, inside = 1, list[int]()
    for duration in reversed(items):
        if sum(inside) + duration > period:
            group, inside = group + 1, []
        inside.append(duration)
        found.insert(0, group)
    return found


def items_of(chain: Figures, bounds: Sequence[int]) -> list[int]:
    """Stage, cut, stage, …"""
    items = [chain.load(1, bounds[1])]
    for first, end in pairwise(bounds[1:]):
        items += [chain.cut[first], chain.load(first + 1, end)]
    return items


def fits(chain: Figures, bounds: Sequence[int], period: int, memory: int) -> bool:
    """Whether every stage fits at this period."""
    group = greedy_groups(items_of(chain, bounds), period)[::2]
    stages = zip(bounds, bounds[1:], group, strict=False)
    return all(chain.memory(first + 1, end, g) <= memory for first, end, g in stages)


def partition_period(chain: Figures, bounds: Sequence[int], memory: int) -> int | None:
    """The shortest period of one partition: the least sum of consecutive items at which it fits."""
    items = items_of(chain, bounds)
    sums = {sum(items[i:j]) for i in range(len(items)) for j in range(i + 1, len(items) + 1)}
    periods = [max(1, t) for t in sums if t >= max(items) and fits(chain, bounds, max(1, t), memory)]
    return min(periods, default=None)


def best_period(chain: Figures, most: int, memory: int) -> int | None:
    """The shortest period over all partitions."""
    found = [partition_period(chain, bounds, memory) for bounds in all_bounds(chain.length, most)]
    return min((t for t in found if t is not None), default=None)


def madpipe_dp(chain: Figures, target: int, processors: int, memory: int) -> float:
    """MadPipe-DP(target), section 4.2.2, on normal processors only, with exact delays and C(k-1) in V'."""

    def oplus(x: int, y: int) -> int:
        if math.ceil(x / target) == math.ceil((x + y) / target):
            return x + y
        return target * math.ceil(x / target) + y

    @cache
    def shortest(last: int, p: int, delay: int) -> float:
        if last == 0:
            return 0
        best = math.inf
        if p == 0:
            return best
        for k in range(last, 0, -1):
            load = chain.load(k, last)
            if chain.memory(k, last, max(1, math.ceil((delay + load) / target))) > memory:
                continue
            transfer = chain.cut[k - 1] if k > 1 else 0
            behind = oplus(oplus(delay, load), transfer)
            best = min(best, max(load, transfer, shortest(k - 1, p - 1, behind)))
        return best

    return shortest(chain.length, processors, 0)


def algorithm_1(chain: Figures, processors: int, memory: int) -> float:
    """Algorithm 1 with lines 2 and 7 corrected, on integers, until the bracket closes. inf: infeasible."""
    lower = max(1, math.ceil(sum(chain.work) / processors))
    upper = sum(chain.work) + sum(chain.cut[1:-1]) + 1
    best = math.inf
    while lower < upper:
        target = (lower + upper) // 2
        load = madpipe_dp(chain, target, processors, memory)
        reached = max(load, target)
        best = min(best, reached)
        lower = max(lower, min(int(min(load, target)), target) + (load > target))
        upper = int(min(upper, reached))
    return best
