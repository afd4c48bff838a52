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
from pipebench.bounds.operators import divisors
from pipebench.costs.quantise import FloatArray
from pipebench.domain.problem import Problem

MOST_DEVICES = 64
MOST_SAMPLES = 1 << 20
"""Of a mini-batch: all its divisors are looked at."""
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
            for pipelines in divisors(problem.mini_batch):
                if pipelines <= (self.groups.devices if problem.pins.data_parallel != 1 else 1):
                    yield self._case(pipelines, 0)
        else:
            for size in (0, *divisors(problem.mini_batch)):
                yield self._case(1, size)

    def _case(self, pipelines: int, size: int) -> LayerCase:
        groups = groups_of(self.groups.devices)
        rows: dict[tuple[int, int], list[list[Row]]] = {each: [[] for _ in self.classes] for each in groups}
        for copies in self._copies(pipelines, size):
            kind = Kind(pipelines * copies, False, size > 0, size // copies)
            for devices, turns in groups_of(self.groups.devices // copies):
                for row, found in zip(self._rows(kind, devices, turns), rows[copies * devices, copies * turns], strict=True):
                    found += row
        made = [self._group(pipelines, *each, rows[each]) for each in groups]
        return LayerCase(pipelines, size > 0, size, tuple(made))

    def _copies(self, pipelines: int, size: int) -> list[int]:
        """Of the pipelines. One copy stands for more, with micro-batches of all of them, unless these are pinned."""
        problem = self.groups.problem
        if problem.pins.micro_batch is None:
            return [1]
        samples = problem.mini_batch // pipelines
        return [each for each in divisors(samples) if each <= self.groups.devices and size % each == 0]

    def _rows(self, kind: Kind, devices: int, turns: int) -> list[list[Row]]:
        """Of each class the rows of one of its operators."""
        found: list[list[Row]] = [[] for _ in self.classes]
        repeat = self.groups.problem.pins.recompute == "stage"
        for stage in self.groups.stages(kind, devices, turns):
            operators, each = self.groups.rows(stage, kind, repeat, 0)
            for number, alike in enumerate(self.classes):
                for row in each[operators == alike[0]]:
                    saved = int(row[SAVED]) if self.at_once[number] else 0
                    found[number].append((int(row[WHOLE]), int(row[STATE]), saved))
        return found

    def _group(self, pipelines: int, devices: int, turns: int, rows: list[list[Row]]) -> LayerGroup:
        kept = [_useful(pipelines, each) for each in rows]
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


def _useful(pipelines: int, rows: list[Row]) -> tuple[Row, ...]:
    """Those that are least at some price, the quickest first: corners of the lower convex hull."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: (row[0], _bytes(pipelines, row[1:]), row)):
        here = row[0], _bytes(pipelines, row[1:])
        if kept and here[1] >= _bytes(pipelines, kept[-1][1:]):
            continue
        while len(kept) > 1:
            (x0, y0), (x1, y1) = ((each[0], _bytes(pipelines, each[1:])) for each in kept[-2:])
            if (y1 - y0) * (here[0] - x0) < (here[1] - y0) * (x1 - x0):
                break
            kept.pop()
        kept.append(row)
    return tuple(kept)


def is_looked_at(problem: Problem, devices: int) -> bool:
    """Whether a problem has devices of one type, and not too many devices and samples."""
    one_type = len(set(problem.cluster.devices)) == 1
    return one_type and devices <= MOST_DEVICES and problem.mini_batch <= MOST_SAMPLES

