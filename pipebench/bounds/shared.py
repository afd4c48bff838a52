"""A lower bound on time from what all operators share: the time and the memory of all devices together.

A price of a byte turns both into one sum, which is at most what the devices have. The least of that sum over all
choices is at most the sum of any plan. Where it is more than the devices have in a time, no plan takes so little.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pipebench.bounds.choices import (
    COMPUTE,
    CROSSING,
    DEVICES,
    FORWARD,
    LIVE,
    LOSS,
    OWN,
    ROUND,
    SAVED,
    STATE,
    UPDATE,
    Choices,
    choices,
    undominated,
)
from pipebench.bounds.operators import devices_of_a_plan, every_stage_ns, most_replicas
from pipebench.bounds.recursion import ENOUGH, FINE, least_cost
from pipebench.bounds.spine import KINDS, PLACED, SAVES, STARTED, Spine, spine_of
from pipebench.costs.formula import Formula
from pipebench.costs.quantise import IntArray
from pipebench.domain.problem import Problem

PARTS = 16
"""A share is a whole number of these."""
PRICE_BITS = 60
"""A price is a whole number of 2^-60 ns a byte."""
POINTS = 16
"""Steps of the grid on which saved bytes are counted."""
MOST_PLACES = 32
"""More devices are counted in units of several."""
LARGEST_BITS = 43
"""Costs are counted in units so small that what the devices have is of so many bits."""
SLACK = 10**11
"""Of memory one part in so many is added: more than all rounding of bytes in the cost model and the tables."""


@dataclass(frozen=True)
class Prices:
    """Which sum of resources is looked at.

    share: of PARTS, how much the time of all tasks with the wait before the first one counts; the rest is that of
    forwards and input gradients with the waits before and behind them.
    byte: the price of a byte, in 2^-PRICE_BITS ns.
    waits: whether devices wait for the operators before their first one.
    instant: of PARTS, how much the memory of one instant counts, at which all operators have saved something; the
    rest is that of all instants together.
    """

    share: int
    byte: int
    waits: bool
    instant: int = 0


@dataclass(frozen=True)
class Shared:
    """What a problem's devices have, and what its operators take of it.

    devices, memory_bytes: of a plan, at most.
    every_ns: what each device runs once a mini-batch, whatever it holds.
    lasting: whether devices wait for each other at the start and at the end (a mini-batch ends with a flush).
    """

    choices: Choices
    spine: Spine
    devices: int
    memory_bytes: int
    every_ns: int
    lasting: bool

    @cached_property
    def step_bytes(self) -> int:
        """A step of the grid: POINTS of them are the most that can be saved."""
        return max(1, -(-int(self.choices.most(SAVED).sum()) // POINTS))

    @property
    def unit(self) -> int:
        """Devices that are counted as one."""
        return -(-self.devices // MOST_PLACES)

    def excess(self, time_ns: int, prices: Prices) -> float:
        """By how much all choices together need more than the devices have in the time, in ns of a device.

        Above zero: no plan takes so little. The comparison is one of whole numbers. What is needed in no time at
        all counts as in 1 ns, which is less.
        """
        have = self.devices * (time_ns - self.every_ns) - (-prices.byte * self.memory_bytes >> PRICE_BITS)
        time_ns = max(time_ns, 1)
        bits = LARGEST_BITS - max(have, 1).bit_length()
        more = self._needed(time_ns, prices, bits) - (have << bits if bits >= 0 else -(-have >> -bits))
        return more / 2.0**bits

    def _needed(self, time_ns: int, prices: Prices, bits: int) -> int:
        """The least sum of all choices, in units of 2^-bits ns."""
        visits = self.spine.visits(prices.waits)
        if not visits:
            return 0
        operator, kind = np.array(visits, np.int64).T
        number = self.choices.of_operator[operator]
        places = np.zeros((len(visits), 2), np.int64)
        rows: list[IntArray] = []
        slopes: list[IntArray] = []
        total = 0
        for each in range(KINDS):
            here = kind == each
            tables, table = np.unique(number[here], return_inverse=True)
            first, more, steeper = _rows(self, tables, each, time_ns, prices, bits)
            places[here] = total + np.stack([first[:-1][table], first[1:][table]], axis=1)
            total += len(more)
            rows.append(more)
            slopes.append(steeper)
        counted = -(-self.devices // self.unit) if prices.waits else 0
        return int(
            least_cost(
                places, np.concatenate(rows), np.concatenate(slopes),
                self.devices, self.unit, counted, POINTS if prices.byte else 0,
            )
        )  # fmt: skip


def shared(problem: Problem, fewest_replicas: int = 1) -> Shared | None:
    """What is shared among the operators of a problem. None where no plan fits into memory.

    fewest_replicas: of each stage, those in all pipelines counted.
    """
    found = choices(problem, fewest_replicas)
    if found is None:
        return None
    devices = devices_of_a_plan(problem)
    cluster = problem.cluster
    sizes = sorted((cluster.type_of(device).memory_bytes for device in range(cluster.size)), reverse=True)
    held = Formula(problem.regime, problem.mini_batch).every_stage(most_replicas(problem)).held
    memory = sum(max(0, size - held) for size in sizes[:devices])
    return Shared(
        choices=found,
        spine=spine_of(problem.profile.graph, found.least(ROUND).astype(np.int64).tolist()),
        devices=devices,
        memory_bytes=memory + memory // SLACK,
        every_ns=every_stage_ns(problem),
        lasting=problem.regime.mode == "sync",
    )


def _rows(
    problem: Shared, tables: IntArray, kind: int, time_ns: int, prices: Prices, bits: int
) -> tuple[IntArray, IntArray, IntArray]:
    """The rows for visits of a kind, of these tables (`least_cost`): first row of each table, rows, slopes.

    Costs are floats, of which LOSS is taken off before they are rounded down.
    """
    first = problem.choices.first
    group = np.repeat(np.arange(len(tables)), first[tables + 1] - first[tables])
    chosen = [np.arange(first[table], first[table + 1]) for table in tables]
    table = problem.choices.rows[np.concatenate(chosen) if chosen else np.zeros(0, np.int64)]
    alone = kind == PLACED or not prices.waits
    compute = own = float(kind != STARTED)
    update = state = float(kind == STARTED or alone)
    part, price = prices.share / PARTS, prices.byte / 2**PRICE_BITS
    instant, lasting = price * (prices.instant / PARTS), price * (1 - prices.instant / PARTS)
    scale = 2.0**bits * (1 - LOSS)
    nothing = np.zeros(len(table))
    cost = (
        compute * (part * table[:, COMPUTE] + (1 - part) * table[:, CROSSING])
        + update * part * table[:, UPDATE]
        + own * (lasting * (table[:, OWN] / time_ns) + instant * table[:, LIVE])
        + state * price * table[:, STATE]
    ) * scale
    wait = (part * table[:, FORWARD] + (1 - part) * table[:, ROUND]) * scale
    slope = lasting * problem.step_bytes * (table[:, ROUND] / time_ns) * scale
    counts, prices_bytes = prices.waits and kind != SAVES, prices.byte > 0 and kind != STARTED
    columns = np.stack(
        [
            np.ceil(table[:, DEVICES] / problem.unit) if counts else nothing,
            np.minimum(np.floor(cost), ENOUGH // 2),
            np.floor(wait) if counts and kind == PLACED else nothing,
            slope if prices_bytes and kind == PLACED else nothing,
            table[:, SAVED] if prices_bytes else nothing,
        ],
        axis=1,
    )
    kept = undominated(columns, group)
    columns, firsts = columns[kept], np.searchsorted(group[kept], np.arange(len(tables) + 1))
    steps = columns[:, 4] // problem.step_bytes
    fine = np.floor((columns[:, 4] - steps * problem.step_bytes) / problem.step_bytes * FINE)
    rows = np.stack([columns[:, 1], columns[:, 0], columns[:, 2], steps, fine], axis=1).astype(np.int64)
    slopes = np.floor(np.minimum(columns[:, 3:4] * np.arange(POINTS + 1), ENOUGH // 2)).astype(np.int64)
    return firsts, rows, slopes
