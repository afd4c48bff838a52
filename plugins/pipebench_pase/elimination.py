"""FindBestStrategy (PaSE, figure 4) as min-sum elimination of one vertex after the other on dense tables."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod

import numpy as np
import numpy.typing as npt

from pipebench_pase.ordering import EliminationOrder
from pipebench_pase.space import FloatArray

AT_ONCE = 1 << 21
"""Entries that are summed in one array; larger tables take one configuration of the vertex at a time."""
Choices = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Costs:
    """Cost tables of a graph.

    vertices: for each vertex, the cost of each configuration.
    pairs: (u, v), u < v, of shape (configurations of u, configurations of v).
    """

    vertices: Sequence[FloatArray]
    pairs: Mapping[tuple[int, int], FloatArray]

    @property
    def adjacency(self) -> list[frozenset[int]]:
        """For each vertex those that share a table with it."""
        near: list[set[int]] = [set() for _ in self.vertices]
        for u, v in self.pairs:
            near[u].add(v)
            near[v].add(u)
        return [frozenset(each) for each in near]

    def of(self, strategy: Sequence[int]) -> float:
        """F of equation 1 for one configuration of each vertex."""
        own = sum(float(costs[number]) for costs, number in zip(self.vertices, strategy, strict=True))
        return own + sum(float(costs[strategy[u], strategy[v]]) for (u, v), costs in self.pairs.items())


@dataclass(frozen=True, slots=True)
class BestStrategy:
    """The strategy of the least cost.

    cost: of the strategy.
    reused: number of eliminations that were equal to an earlier one.
    """

    cost: float
    strategy: tuple[int, ...]
    reused: int = 0


@dataclass(frozen=True, slots=True)
class _Table:
    """Costs over some vertices, ascending. key: equal for arrays of equal content."""

    scope: tuple[int, ...]
    values: FloatArray
    key: int


def find_best(costs: Costs, sequenced: EliminationOrder, check: Callable[[], None] = lambda: None) -> BestStrategy:
    """The strategy of the least cost; the first of equals for each vertex, given those eliminated later.

    Equal parts of a graph (the layers of a Transformer) are eliminated once. check: called before each vertex.
    """
    waiting: list[set[int]] = [set() for _ in costs.vertices]
    tables: dict[int, _Table] = {}
    keys: dict[int, int] = {}
    numbering = count()

    def add(table: _Table) -> None:
        number = next(numbering)
        tables[number] = table
        for vertex in table.scope:
            waiting[vertex].add(number)

    for vertex, own in enumerate(costs.vertices):
        add(_Table((vertex,), own, keys.setdefault(id(own), len(keys))))
    for pair, both in costs.pairs.items():
        add(_Table(pair, both, keys.setdefault(id(both), len(keys))))
    next_key = len(keys)
    done: dict[object, tuple[FloatArray, Choices, int]] = {}
    kept: list[tuple[int, tuple[int, ...], Choices]] = []
    total, reused = 0.0, 0
    for vertex, dependent in zip(sequenced.order, sequenced.dependent, strict=True):
        check()
        numbers = sorted(waiting[vertex])
        mine = [tables.pop(number) for number in numbers]
        for number, table in zip(numbers, mine, strict=True):
            for other in table.scope:
                waiting[other].discard(number)
        place = {other: axis for axis, other in enumerate((vertex, *dependent))}
        shape = tuple(len(costs.vertices[other]) for other in dependent)
        same = tuple(sorted((table.key, tuple(place[other] for other in table.scope)) for table in mine))
        if same in done:
            reused += 1
        else:
            values, choices = _least(mine, place, shape)
            done[same] = values, choices, next_key
            next_key += 1
        values, choices, key = done[same]
        kept.append((vertex, dependent, choices))
        if dependent:
            add(_Table(dependent, values, key))
        else:
            total += float(values)
    strategy = [0] * len(costs.vertices)
    for vertex, dependent, choices in reversed(kept):
        strategy[vertex] = int(choices[tuple(strategy[other] for other in dependent)])
    return BestStrategy(total, tuple(strategy), reused)


def _least(
    tables: Sequence[_Table], place: Mapping[int, int], shape: tuple[int, ...]
) -> tuple[FloatArray, Choices]:
    """The least sum of the tables over the configurations of the vertex, and the configuration that has it."""
    operands = sorted((_align_axes(table, place, len(shape)) for table in tables), key=lambda each: each.size)
    own = operands[0].shape[0]
    if own * prod(shape) <= AT_ONCE:
        whole = _sum(operands)
        whole = np.broadcast_to(whole, (own, *shape))
        chosen = whole.argmin(axis=0)
        return np.take_along_axis(whole, chosen[None], axis=0)[0], chosen.astype(np.int32)
    least = np.empty(shape)
    least[...] = _sum([each[0] for each in operands])
    choices = np.zeros(shape, np.int32)
    one = np.empty(shape)
    better = np.empty(shape, np.bool_)
    for number in range(1, own):
        *smaller, largest = [each[number] for each in operands]
        np.add(_sum(smaller) if smaller else 0.0, largest, out=one)
        np.less(one, least, out=better)
        np.copyto(least, one, where=better)
        np.copyto(choices, number, where=better)
    return least, choices


def _align_axes(table: _Table, place: Mapping[int, int], dependent: int) -> FloatArray:
    """The table with one axis for the vertex and each of its dependent set, of length 1 where it lacks one."""
    axes = sorted(range(len(table.scope)), key=lambda axis: place[table.scope[axis]])
    values = table.values.transpose(axes)
    shape = [1] * (dependent + 1)
    for axis in axes:
        shape[place[table.scope[axis]]] = table.values.shape[axis]
    return values.reshape(shape)


def _sum(operands: Sequence[FloatArray]) -> FloatArray:
    total = operands[0]
    for each in operands[1:]:
        total = total + each
    return total
