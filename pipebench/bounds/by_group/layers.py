"""A lower bound on time: operators that are alike, as wholes on groups of devices, each within time and memory.

A group holds so many operators of each class. Weights say what an operator of each class counts; where no group
holds as much as its devices are worth, and all operators together are worth more than all devices, no plan takes
so little time. The weights are the dual values of a linear program over what groups may hold, whose columns are
generated (Gilmore and Gomory, Operations Research 9, 1961), and are checked in whole numbers.
Docs: cost-model.md, section 11, "Layers".
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import msgspec
import numpy as np

from pipebench.bounds.by_group.layer_tables import LayerCase, LayerTables, is_looked_at
from pipebench.bounds.choices import COMPUTE
from pipebench.bounds.search import MOST_RISE
from pipebench.bounds.shared import Shared
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.problem import Problem
from pipebench.system.highs import solve

WEIGHT_BITS = 20
"""Of the largest weight, in whole numbers."""
FINE = 12
"""A bound is found to one part in 2^FINE."""
STEP = 6
"""Times that are tried first are one part in 2^STEP above the last bound, then twice as much, and so on."""
MOST_COLUMNS = 60
"""Times that columns are generated; then the time is taken to suffice."""
EACH_TIME = 8
"""Columns that are added at a time."""
SLACK = 1e-12
"""Such a part is added to what there is, more than all rounding of floats: what fits never counts as too much."""
NEAR = 1e-9
"""By which a column may be worth more than its devices before it is added."""
TRIES = 6
"""Times, each one part in 2^FINE less, that are tried where weights in whole numbers do not show it."""
NEVER = int(np.iinfo(np.int64).max)


Column = tuple[int, FloatArray]
"""Devices of a group, and how many operators of each class it holds."""


class Weighed(msgspec.Struct, frozen=True):
    """A case, what an operator of each class counts, and what a device does at most."""

    case: LayerCase
    weights: tuple[int, ...]
    of_a_device: int


@dataclass(frozen=True, slots=True)
class LayersProof:
    """No plan takes less than `claimed_ns`. `certificates.layer_check` checks it.

    devices: that a plan uses, at most. memory_bytes: of one of them. every_ns: what each runs once a mini-batch.
    last: an operator that nothing reads from. classes: operators that are alike, by their positions in the graph.
    """

    claimed_ns: int
    devices: int
    memory_bytes: int
    every_ns: int
    last: int
    classes: tuple[tuple[int, ...], ...]
    cases: tuple[Weighed, ...]

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        content: dict[str, Any] = msgspec.to_builtins(self)
        for weighed in content["cases"]:
            weighed.update(weighed.pop("case"))
            del weighed["pattern"]  # the size of micro-batches says it
        return content


def layers_proof(problem: Problem, shared: Shared, time_ns: int) -> LayersProof | None:
    """The proof of the largest time that is found to be needed, above `time_ns`. None where there is none.

    shared: of the problem.
    """
    if not is_looked_at(problem, shared.devices):
        return None
    tables = LayerTables(problem, shared.choices.least(COMPUTE))
    free, every = tables.groups.free_bytes, shared.every_ns
    if not tables.classes or free <= 0:
        return None
    packings: list[Packing] = []
    for case in tables.cases():
        packing = Packing(case, tables.counts, shared.devices, free, every)
        if not packing.short(time_ns):
            return None
        packings.append(packing)
    most = MOST_RISE * max(time_ns, 1)
    claimed = most + 1
    for packing in packings:
        claimed = packing.raised(time_ns, claimed)
    if claimed > most:
        return None
    weighed = _weighed(packings, time_ns, claimed)
    if weighed is None:
        return None
    claimed, cases = weighed
    classes = tuple(tuple(each) for each in tables.classes)
    return LayersProof(claimed, shared.devices, free, every, tables.last, classes, cases)


def _weighed(packings: list["Packing"], time_ns: int, claimed: int) -> tuple[int, tuple[Weighed, ...]] | None:
    """The claim, or one a little smaller, with what proves it; None where nothing above a time is proven."""
    for _ in range(TRIES):
        found = []
        for packing in packings:
            each = packing.weighed(claimed - 1)
            if each is None:
                break
            found.append(each)
        else:
            return claimed, tuple(found)
        claimed -= max(1, claimed >> FINE)
        if claimed <= time_ns:
            return None
    return None


@dataclass(frozen=True, slots=True)
class _Group:
    """prices: shape (prices, 2). costs: of an operator of each class at each price, shape (prices, classes).
    others: what all but the last class cost at each price, for each of `Packing._held`.
    """

    devices: int
    prices: FloatArray
    costs: FloatArray
    others: FloatArray


class Packing:
    """Whether the operators of all classes go on the devices in a time, in the plans of a case.

    counts: operators of each class, in one pipeline. free_bytes: of a device. every_ns: see `LayersProof`.
    """

    def __init__(self, case: LayerCase, counts: list[int], devices: int, free_bytes: int, every_ns: int) -> None:
        self.case, self._counts, self._devices, self._every_ns = case, counts, devices, every_ns
        self._bytes = case.pipelines * free_bytes
        self._known: dict[int, FloatArray | None] = {}

    @cached_property
    def _held(self) -> FloatArray:
        """All numbers of operators of all classes but the last, shape (numbers, classes - 1)."""
        numbers = [count + 1 for count in self._counts[:-1]]
        return np.indices(numbers).reshape(len(numbers), prod(numbers)).T.astype(np.float64)

    @cached_property
    def _groups(self) -> list["_Group"]:
        """Those that no smaller one is as good as."""
        found = []
        for at in _undominated(self.case):
            group, costs = self.case.groups[at], _costs(self.case, at)
            with np.errstate(invalid="ignore"):
                each = self._held[:, None, :] * costs[None, :, :-1]
            others = np.where(self._held[:, None, :] > 0, each, 0).sum(axis=2)
            found.append(_Group(group.devices, np.array(group.prices, np.float64), costs, others))
        return found

    def _most_of_last(self, time_ns: int) -> list[FloatArray]:
        """Of each group how many operators of the last class go beside each of `_held`; below 0 where none may."""
        room, found = time_ns - self._every_ns, []
        for group in self._groups:
            have = group.prices @ (room, self._bytes)
            left = have + SLACK * (group.prices @ (abs(room), self._bytes)) - group.others
            cost = group.costs[:, -1]
            with np.errstate(divide="ignore", invalid="ignore"):
                each = np.where(cost > 0, np.floor(left / cost * (1 + SLACK)), np.inf)
            most = np.minimum(each.min(axis=1), self._counts[-1])
            found.append(np.where((left >= 0).all(axis=1), most, -1.0))
        return found

    def short(self, time_ns: int) -> bool:
        """Whether the time is too short, as far as floats say."""
        return self._weights(time_ns) is not None

    def _weights(self, time_ns: int) -> FloatArray | None:
        """What an operator of each class counts, so that all together are worth more than the devices, of which
        each counts 1 at most. None where none are found.
        """
        if time_ns not in self._known:
            self._known[time_ns] = self._priced(time_ns)
        return self._known[time_ns]

    def _priced(self, time_ns: int) -> FloatArray | None:
        totals = self.case.pipelines * np.array(self._counts, np.float64)
        alone: FloatArray = np.eye(len(totals))
        most = self._most_of_last(time_ns)
        columns: list[Column] = []
        for number in range(len(totals)):
            column = max(
                (self._column(at, last, number) for at, last in enumerate(most)), key=_of_a_device(number)
            )
            if not column[1][number]:  # no group holds one
                weights: FloatArray = alone[number]
                return weights
            columns.append(column)
        for _ in range(MOST_COLUMNS):
            weights = _dual_values(columns, totals)
            if float(weights @ totals) <= self._devices:
                return None
            worth = [self._worth(last, weights) for last in most]
            shares = [float(each.max()) / group.devices for each, group in zip(worth, self._groups, strict=True)]
            if float(weights @ totals) > self._devices * max(shares) * (1 + NEAR):
                return weights
            if max(shares) <= 1 + NEAR:
                return None
            for at in np.argsort(shares)[::-1][:EACH_TIME].tolist():
                if shares[at] > 1 + NEAR:
                    columns.append(self._numbers(at, most[at], int(worth[at].argmax())))
        return None

    def _worth(self, last: FloatArray, weights: FloatArray) -> FloatArray:
        """What each of `_held` is worth with as many of the last class as go beside it; 0 where that is none."""
        return np.where(last < 0, 0.0, self._held @ weights[:-1] + last * weights[-1])

    def _numbers(self, at: int, last: FloatArray, row: int) -> Column:
        """What a group holds in a row of `_held`."""
        return self._groups[at].devices, np.append(self._held[row], last[row])

    def _column(self, at: int, last: FloatArray, number: int) -> Column:
        """What a group holds where it holds most of a class."""
        weights = np.eye(len(self._counts))[number]
        worth = self._worth(last, weights)
        row = int(worth.argmax())
        return self._numbers(at, last, row) if worth[row] else (self._groups[at].devices, 0 * weights)

    def raised(self, time_ns: int, most_ns: int) -> int:
        """The largest time that is found to be needed: at most `most_ns`, above `time_ns`, which is too short."""
        if self.short(most_ns - 1):
            return most_ns
        low, step = time_ns, max(1, time_ns >> STEP)
        while low + step < most_ns - 1 and self.short(low + step):
            low, step = low + step, 2 * step
        high = min(low + step, most_ns - 1)
        while high - low > max(1, time_ns >> FINE):
            middle = (low + high) // 2
            if self.short(middle):
                low = middle
            else:
                high = middle
        return low + 1

    def weighed(self, time_ns: int) -> Weighed | None:
        """What proves that a time is too short; None where whole numbers do not."""
        found = self._weights(time_ns)
        if found is None:
            return None
        weights = np.floor(found / found.max() * 2**WEIGHT_BITS)
        of_a_device = 0
        for group, last in zip(self._groups, self._most_of_last(time_ns), strict=True):
            of_a_device = max(of_a_device, -(-int(self._worth(last, weights).max()) // group.devices))
        total = self.case.pipelines * int(weights @ self._counts)
        whole = tuple(int(each) for each in weights)
        return Weighed(self.case, whole, of_a_device) if total > self._devices * of_a_device else None


def _of_a_device(number: int) -> Callable[[Column], float]:
    """How many operators of a class a column has for each of its devices."""
    return lambda column: float(column[1][number]) / column[0]


def _dual_values(columns: list[Column], totals: FloatArray) -> FloatArray:
    """The weights that make all operators worth most, where no column is worth more than its devices.

    All are 0, which proves nothing, where the solver finds none.
    """
    import pulp  # takes a tenth of a second, and most problems have no classes of operators

    program = pulp.LpProblem("weights", pulp.LpMaximize)
    weights = [pulp.LpVariable(f"w{at}", 0) for at in range(len(totals))]
    program += pulp.lpSum(total * weight for total, weight in zip(totals.tolist(), weights, strict=True))
    for devices, numbers in columns:
        worth = pulp.lpSum(n * weight for n, weight in zip(numbers.tolist(), weights, strict=True) if n)
        program += worth <= devices
    solved = solve(program)
    return np.array([weight.value() if solved else 0.0 for weight in weights])


def _costs(case: LayerCase, at: int) -> FloatArray:
    """What an operator of each class costs on a group at each of its prices, shape (prices, classes); infinite
    where it cannot be there.
    """
    group = case.groups[at]
    found = np.full((len(group.prices), len(group.rows)), np.inf)
    for number, rows in enumerate(group.rows):
        if rows:
            ns, state, saved = np.array(rows, np.float64).T
            found[:, number] = (np.array(group.prices, np.float64) @ (ns, case.pipelines * state + saved)).min(
                axis=1
            )
    return found


def _undominated(case: LayerCase) -> list[int]:
    """Groups, without those of which every row has one as good on a group of as many or fewer devices."""
    rows = [[np.array(each, np.int64).reshape(-1, 3) for each in group.rows] for group in case.groups]
    least = np.array([[each.min(axis=0, initial=NEVER) for each in here] for here in rows])
    kept: list[int] = []
    for at, here in enumerate(rows):
        near = [other for other in kept if (least[other] <= least[at]).all()]
        if not any(_dominates(rows[other], here) for other in near):
            kept.append(at)
    return kept


def _dominates(rows: list[IntArray], others: list[IntArray]) -> bool:
    return all(
        bool(np.all(np.any(np.all(here[None] <= there[:, None], axis=2), axis=1)))
        for here, there in zip(rows, others, strict=True)
    )
