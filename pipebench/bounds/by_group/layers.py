"""A lower bound on time: operators that are alike, as wholes on groups of devices, each within time and memory.

A group holds so many operators of each class. Weights say what an operator of each class counts; where no group
holds as much as its devices are worth, and all operators together are worth more than all devices, no plan takes
so little time. The weights are the dual values of a linear program over what groups may hold, whose columns are
generated (Gilmore and Gomory, Operations Research 9, 1961), and are checked in whole numbers.
Docs: cost-model.md, section 11, "Layers".
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from pipebench.bounds.by_group.groups import is_small
from pipebench.bounds.by_group.layer_tables import LayerCase, LayerTables, is_looked_at
from pipebench.bounds.choices import COMPUTE
from pipebench.bounds.search import MOST_RISE
from pipebench.bounds.shared import Shared
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.problem import Problem

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
"""Such a part is added to what there is: more than all rounding of floats. So nothing counts as too much that is not."""
NEAR = 1e-9
"""By which a column may be worth more than its devices before it is added."""
TRIES = 6
"""Times, each one part in 2^FINE less, that are tried where weights in whole numbers do not show what others did."""


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
        for case in content["cases"]:
            case |= case.pop("case")
            del case["pattern"]  # the size of micro-batches says it
        return content


def layers_proof(problem: Problem, shared: Shared, time_ns: int) -> LayersProof | None:
    """The proof of the largest time that is found to be needed, above `time_ns`. None where there is none.

    shared: of the problem. Of a small problem all sets of operators are looked at (`groups`): that says more.
    """
    if is_small(problem) or not is_looked_at(problem, shared.devices):
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
    """The claim, or one that is a little smaller, with what proves it; None where nothing above a time is proven."""
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
        each = np.indices([count + 1 for count in self._counts[:-1]])
        return each.reshape(len(self._counts) - 1, -1).T.astype(np.float64)

    @cached_property
    def _groups(self) -> list[tuple[int, FloatArray, FloatArray, FloatArray]]:
        """Of groups that no smaller one is as good as: devices, prices, what an operator of each class costs at
        each price, and what all but the last class cost for each of `_held`.
        """
        found = []
        for at in _undominated(self.case):
            group = self.case.groups[at]
            prices = np.array(group.prices, np.float64)
            costs = _costs(self.case, at)
            with np.errstate(invalid="ignore"):
                each = self._held[:, None, :] * costs[None, :, :-1]
            others = np.where(self._held[:, None, :] > 0, each, 0).sum(axis=2)
            found.append((group.devices, prices, costs, others))
        return found

    def _most_of_last(self, time_ns: int) -> list[FloatArray]:
        """Of each group how many operators of the last class go beside each of `_held`; below 0 where none may."""
        room, found = time_ns - self._every_ns, []
        for _, prices, costs, others in self._groups:
            have = prices @ (room, self._bytes)
            left = have + SLACK * (prices @ (abs(room), self._bytes)) - others
            with np.errstate(divide="ignore", invalid="ignore"):
                each = np.where(costs[:, -1] > 0, np.floor(left / costs[:, -1] * (1 + SLACK)), np.inf)
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
        most = self._most_of_last(time_ns)
        weights = self._held_by_none(most)
        if weights is not None:
            return weights
        weights = 1 / totals
        columns: list[tuple[float, ...]] = []
        for _ in range(MOST_COLUMNS):
            made: list[tuple[float, tuple[float, ...]]] = []
            for (devices, *_), last in zip(self._groups, most, strict=True):
                worth = np.where(last < 0, -1.0, self._held @ weights[:-1] + last * weights[-1])
                at = int(worth.argmax())
                made.append((float(worth[at]) / devices, (devices, *self._held[at], last[at])))
            made.sort(reverse=True)
            worth_most = made[0][0]
            if float(weights @ totals) > self._devices * worth_most * (1 + NEAR):
                return weights
            if columns and worth_most <= 1 + NEAR:
                return None
            columns += [each for worth, each in made[:EACH_TIME] if not columns or worth > 1 + NEAR]
            weights = _dual_values(columns, totals)
            if float(weights @ totals) <= self._devices:
                return None
        return None

    def _held_by_none(self, most: list[FloatArray]) -> FloatArray | None:
        """Weights that count one class alone, of which no group holds any."""
        some = np.zeros(len(self._counts))
        for last in most:
            fits = last >= 0
            if fits.any():
                some[:-1] = np.maximum(some[:-1], self._held[fits].max(axis=0))
                some[-1] = max(some[-1], last.max())
        return None if some.all() else (some == 0).astype(np.float64)

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
        for (devices, *_), last in zip(self._groups, self._most_of_last(time_ns), strict=True):
            worth = np.where(last < 0, 0, self._held @ weights[:-1] + last * weights[-1]).max()
            of_a_device = max(of_a_device, -(-int(worth) // devices))
        total = self.case.pipelines * int(weights @ self._counts)
        whole = tuple(int(each) for each in weights)
        return Weighed(self.case, whole, of_a_device) if total > self._devices * of_a_device else None


def _dual_values(columns: list[tuple[float, ...]], totals: FloatArray) -> FloatArray:
    """The weights that make all operators worth most, where no column is worth more than its devices."""
    import pulp  # noqa: PLC0415 - most problems have no classes of operators

    program = pulp.LpProblem("weights", pulp.LpMaximize)
    weights = [pulp.LpVariable(f"w{at}", 0) for at in range(len(totals))]
    program += pulp.lpSum(float(total) * weight for total, weight in zip(totals, weights, strict=True))
    for devices, *held in columns:
        program += pulp.lpSum(float(n) * w for n, w in zip(held, weights, strict=True) if n) <= float(devices)
    for at, total in enumerate(totals):
        program += weights[at] <= 1e3 * float(columns[0][0]) / float(total) * len(totals) * 1e3
    program.solve(pulp.HiGHS(msg=False, threads=1, random_seed=0))
    return np.array([weight.value() or 0.0 for weight in weights])


def _costs(case: LayerCase, at: int) -> FloatArray:
    """What an operator of each class costs on a group at each of its prices, shape (prices, classes); infinite where
    it cannot be there.
    """
    group = case.groups[at]
    found = np.full((len(group.prices), len(group.rows)), np.inf)
    for number, rows in enumerate(group.rows):
        if rows:
            ns, state, saved = np.array(rows, np.float64).T
            found[:, number] = (np.array(group.prices, np.float64) @ (ns, case.pipelines * state + saved)).min(axis=1)
    return found


def _undominated(case: LayerCase) -> list[int]:
    """Groups, without those of which every row has one as good on a group of as many or fewer devices."""
    kept: list[int] = []
    rows = [[np.array(each, np.int64).reshape(-1, 3) for each in group.rows] for group in case.groups]
    for at, here in enumerate(rows):
        if not any(_dominates(rows[other], here) for other in kept):
            kept.append(at)
    return kept


def _dominates(rows: list[IntArray], others: list[IntArray]) -> bool:
    return all(
        bool((here[None] <= there[:, None]).all(axis=2).any(axis=1).all())
        for here, there in zip(rows, others, strict=True)
    )
