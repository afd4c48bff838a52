"""What groups of devices can hold of operators that are alike, such as the layers of a language model.

Operators that every stage runs, holds and saves alike are a class: of them only the number counts that is on a
group. So tables are of classes, and problems may have hundreds of operators.
Docs: cost-model.md, section 11, "Layers".
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd

import numpy as np

from pipebench.bounds.by_group.group_tables import SAVED, STATE, WHOLE, GroupTables, Kind, groups_of
from pipebench.bounds.by_group.groups import MOST_SAMPLES, several_pipelines
from pipebench.bounds.operators import divisors
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.problem import Problem

MOST_DEVICES = 64
MOST_CUTS = 100_000
"""Sizes of micro-batches on all groups in all cases: some seconds."""
MOST_COUNTS = 4096
"""Numbers of operators of all classes but the largest one, together, that a group may hold."""
ENOUGH_WORK = 0.9
"""Classes that count have so much of the work at least; else their wholes say little."""
Row = tuple[int, int, int]
"""ns of a mini-batch, bytes of state, and bytes saved of one micro-batch, on each device of the first replica."""
Price = tuple[int, int]
"""Of a ns and of a byte."""


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """A number of devices, in all copies of the pipeline, that hold the same stages.

    turns: replicas of each stage that take micro-batches in turn, 1 where they share each of them.
    prices: at which time and memory of a device are added up.
    rows: of each class; none where no stage on the group can hold one of its operators.
    """

    devices: int
    turns: int
    prices: tuple[Price, ...]
    rows: tuple[tuple[Row, ...], ...]


@dataclass(frozen=True, slots=True)
class LayerCase:
    """Plans of so many pipelines on the same devices, in an order, or in a pattern of one size of micro-batches.

    micro_batch: that size, of all copies together; 0 in an order.
    """

    pipelines: int
    pattern: bool
    micro_batch: int
    groups: tuple[LayerGroup, ...]


class LayerTables:
    """The tables of a problem on devices of one type. `classes`: positions of operators that are alike, in the
    graph, the largest class last. `last`: an operator that nothing reads from, at whose first forward's end memory
    is looked at. `at_once`: of each class whether it is before that one.
    """

    def __init__(self, problem: Problem, work_ns: FloatArray) -> None:
        """work_ns: of each operator, at least."""
        self.groups = GroupTables(problem)
        self.last = self.groups.lasts[0]
        self._before = self.groups.before(self.last)
        self.classes = self._largest(self._alike(), work_ns)
        self._ways = [np.flatnonzero(self.groups.ways.operator == each[0]) for each in self.classes]
        self.at_once = [bool(self._before[each[0]]) for each in self.classes]

    @property
    def counts(self) -> list[int]:
        """Operators of each class."""
        return [len(each) for each in self.classes]

    def _alike(self) -> list[list[int]]:
        """Operators with the same ways, weights that count and place before the last."""
        ways, shares = self.groups.ways, self.groups.shares
        columns = (
            *(ways.devices, ways.parameter_bytes, ways.expert_bytes, ways.plain, ways.fixed_bytes),
            *(ways.saved_bytes, ways.workspace_bytes, ways.forward_s, ways.backward_s, ways.plain_backward_s),
            *(ways.weight_gradient_s, shares.counted, shares.experts, self._before[ways.operator]),
        )
        table = np.column_stack([np.asarray(each, np.float64) for each in columns])
        rows_of: dict[int, list[bytes]] = {}
        for operator, row in zip(ways.operator.tolist(), table, strict=True):
            rows_of.setdefault(operator, []).append(row.tobytes())
        found: dict[tuple[bytes, ...], list[int]] = {}
        for operator in self.groups.operators:
            found.setdefault(tuple(sorted(rows_of[operator])), []).append(operator)
        return list(found.values())

    @staticmethod
    def _largest(found: list[list[int]], work_ns: FloatArray) -> list[list[int]]:
        """Those with the most work, as many as can be looked at; none where the others have too much of it."""
        of_class = {each[0]: float(work_ns[each].sum()) for each in found}
        last = max(found, key=len, default=[])
        kept: list[list[int]] = []
        most = MOST_COUNTS
        for each in sorted(found, key=lambda each: -of_class[each[0]]):
            if each is not last and len(each) < most:
                kept.append(each)
                most //= len(each) + 1
        kept.append(last)
        counted = sum(of_class[each[0]] for each in kept if each)
        return kept if len(last) > 1 and counted >= ENOUGH_WORK * sum(of_class.values()) else []

    def cases(self) -> Iterator[LayerCase]:
        """Every case: one pipeline on its devices first."""
        problem = self.groups.problem
        if problem.regime.mode == "sync":
            most = self.groups.devices if several_pipelines(problem) else 1
            yield from (self._case(each, 0) for each in divisors(problem.mini_batch) if each <= most)
        else:
            for size in (0, *divisors(problem.mini_batch)):
                yield self._case(1, size)

    def _case(self, pipelines: int, size: int) -> LayerCase:
        groups = groups_of(self.groups.devices)
        rows: dict[tuple[int, int], list[list[IntArray]]] = {each: [[] for _ in self.classes] for each in groups}
        for copies in self._copies(pipelines, size):
            kind = Kind(pipelines * copies, False, size > 0, size // copies)
            for devices, turns in groups_of(self.groups.devices // copies):
                found = rows[copies * devices, copies * turns]
                for each, more in zip(found, self._rows(kind, devices, turns), strict=True):
                    each.append(more)
        made = [layer_group(pipelines, *each, rows[each]) for each in groups]
        return LayerCase(pipelines, size > 0, size, tuple(made))

    def _copies(self, pipelines: int, size: int) -> list[int]:
        """Of the pipelines. In an order one stands for several, with micro-batches of all of them, unless these
        are pinned. In a pattern all stages have one size: of those that share it, in all copies together, it is
        this many times as large as of those that take turns.
        """
        problem = self.groups.problem
        if problem.pins.micro_batch is None and not size:
            return [1]
        samples = problem.mini_batch // pipelines
        return [each for each in divisors(samples) if each <= self.groups.devices and size % each == 0]

    def _rows(self, kind: Kind, devices: int, turns: int) -> list[IntArray]:
        """Of each class the rows of one of its operators, shape (rows, 3)."""
        stages = list(self.groups.stages(kind, devices, turns))
        if not stages:
            return [np.zeros((0, 3), np.int64) for _ in self.classes]
        rows, fits = self.groups.rows(stages, kind.pattern, self.groups.problem.pins.recompute == "stage")
        counted: IntArray = rows[:, :, [WHOLE, STATE, SAVED]].astype(np.int64)
        return [
            counted[:, ways][fits[:, ways]] * (1, 1, at_once)
            for ways, at_once in zip(self._ways, self.at_once, strict=True)
        ]


def layer_group(pipelines: int, devices: int, turns: int, rows: list[list[IntArray]]) -> LayerGroup:
    """A group with the rows that may be of use. rows: of each class, shape (rows, 3), in any parts."""
    kept = [_useful(pipelines, np.concatenate(each)) for each in rows]
    prices = {(1, 0), (0, 1)}
    for each in kept:
        for (quick, *more), (slow, *less) in pairwise(each):
            bytes_, ns = _bytes(pipelines, more) - _bytes(pipelines, less), slow - quick
            prices.add((bytes_ // gcd(bytes_, ns), ns // gcd(bytes_, ns)))
    return LayerGroup(devices, turns, tuple(sorted(prices)), tuple(kept))


def _bytes(pipelines: int, row: Sequence[int]) -> int:
    """What state and saved bytes count at the instants of all pipelines together."""
    state, saved = row
    return pipelines * state + saved


def _useful(pipelines: int, rows: IntArray) -> tuple[Row, ...]:
    """Those that are least at some price, the quickest first: corners of the lower convex hull."""
    held = pipelines * rows[:, 1] + rows[:, 2]
    order = np.lexsort((rows[:, 1], held, rows[:, 0]))
    before = np.minimum.accumulate(held[order]) if len(order) else held
    less = np.flatnonzero(np.append(True, before[1:] < before[:-1])[: len(order)])
    kept: list[Row] = []
    corners: list[tuple[int, int]] = []
    for at in order[less].tolist():
        here = int(rows[at, 0]), int(held[at])
        while len(kept) > 1:
            (x0, y0), (x1, y1) = corners[-2:]
            if (y1 - y0) * (here[0] - x0) < (here[1] - y0) * (x1 - x0):
                break
            kept.pop()
            corners.pop()
        kept.append((here[0], int(rows[at, 1]), int(rows[at, 2])))
        corners.append(here)
    return tuple(kept)


def is_looked_at(problem: Problem, devices: int) -> bool:
    """Whether devices are of one type, not too many, and samples are not cut in too many ways."""
    if len(set(problem.cluster.devices)) > 1 or devices > MOST_DEVICES or problem.mini_batch > MOST_SAMPLES:
        return False
    sizes = divisors(problem.mini_batch)
    pipelines = sum(each <= devices for each in sizes) if problem.regime.mode == "sync" else 2
    needs_input = not all(operator.constant for operator in problem.profile.graph.operators)
    return needs_input and len(sizes) * pipelines * len(groups_of(devices)) <= MOST_CUTS
