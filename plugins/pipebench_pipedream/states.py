"""Where a pipeline may be cut: downsets of the units, with what each sends and costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.coarse import COARSER
from pipebench.algorithms.graph_orders import descendants
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench_pipedream.downsets import Links, linked_downsets, reached_downsets
from pipebench_pipedream.paper_costs import Units

BoolArray = NDArray[np.bool_]
Words = NDArray[np.uint64]


@kernel
def close_over(before: Words, links: IntArray) -> None:  # pragma: no cover - compiled
    """Set bit k of row j where links lead from state k to j. Links to a state come before those from it."""
    for link in range(links.shape[0]):
        first, second = links[link]
        for word in range(first // 64 + 1):
            before[second, word] |= before[first, word]
        before[second, first // 64] |= np.uint64(1) << np.uint64(first % 64)


@kernel
def leads(before: Words, first: int, second: int) -> bool:  # pragma: no cover - compiled
    """Whether the first state may be cut off in front of the second. before: of `States`."""
    return bool((before[second, first // 64] >> np.uint64(first % 64)) & np.uint64(1))


@kernel
def cut_units(holds: BoolArray, first: IntArray, after: IntArray) -> BoolArray:  # pragma: no cover - compiled
    """Units of each state that something outside reads; successors of unit u: after[first[u]:first[u + 1]]."""
    made = np.zeros(holds.shape, dtype=np.bool_)
    for state in range(holds.shape[0]):
        for unit in range(holds.shape[1]):
            if holds[state, unit]:
                for edge in range(first[unit], first[unit + 1]):
                    if not holds[state, after[edge]]:
                        made[state, unit] = True
                        break
    return made


@kernel
def augmented_units(  # pragma: no cover - compiled
    holds: BoolArray, ancestors: BoolArray, first: IntArray, after: IntArray
) -> BoolArray:
    """The antichain of each state (units without a successor in it), and each ancestor of a member with a
    successor that is neither that member nor an ancestor of it. ancestors[u, a]: whether a leads to u.
    """
    n = ancestors.shape[0]
    feeds = np.zeros((n, n), dtype=np.bool_)
    for member in range(n):
        for unit in range(n):
            if ancestors[member, unit]:
                for edge in range(first[unit], first[unit + 1]):
                    other = after[edge]
                    if other != member and not ancestors[member, other]:
                        feeds[member, unit] = True
                        break
    made = np.zeros(holds.shape, dtype=np.bool_)
    for state in range(holds.shape[0]):
        for member in range(n):
            if not holds[state, member]:
                continue
            largest = True
            for edge in range(first[member], first[member + 1]):
                if holds[state, after[edge]]:
                    largest = False
                    break
            if largest:
                made[state, member] = True
                for unit in range(n):
                    if feeds[member, unit]:
                        made[state, unit] = True
    return made


Sent = Literal["cut", "antichain", "free"]
MOST_STATES = 20_000


@dataclass(frozen=True, slots=True)
class States:
    """Downsets in topological order; the last one holds all units. Arrays have the shape (states,) but for the
    first two.

    holds: shape (states, units).
    before: shape (states, words), bit k of row j: whether state k may be cut off in front of state j.
    compute_s, activation_bytes, parameter_bytes: sums over the units of a state.
    sent_bytes: what a state sends to the units outside.
    """

    holds: BoolArray
    before: Words
    compute_s: FloatArray
    activation_bytes: FloatArray
    parameter_bytes: FloatArray
    sent_bytes: FloatArray

    @property
    def count(self) -> int:
        """Number of states."""
        return len(self.holds)


def states_of(
    units: Units,
    kind: Literal["chain", "antichain", "first-source"],
    order: Sequence[int],
    sent: Sent,
) -> States:
    """The states: prefixes of `order`, all downsets, or those that antichains reach from the first source.

    sent: `cut` counts units that something outside reads. `antichain` counts those of the released optimizer's
        augmented antichain, which adds units that several members of the antichain read and nothing outside.
        `free` counts none.

    Raises UnsupportedProblem for more than MOST_STATES states, or when the first source does not reach all units.
    """
    if kind == "chain":
        downsets, held = [], 0
        for unit in order:
            held |= 1 << unit
            downsets.append(held)
        links = list(pairwise(range(len(downsets))))
    elif kind == "antichain":
        try:
            (_, *downsets), linked = linked_downsets(units.successors, MOST_STATES)
        except UnsupportedProblem as error:
            raise UnsupportedProblem(
                error.message, f"use states=chain, or branches=joined; or {COARSER}"
            ) from None
        links = [(first - 1, second - 1) for first, second in linked if first]
    else:
        downsets, links = reached_downsets(units.successors, MOST_STATES)
    holds = _matrix(downsets, units.count)
    if not holds[-1].all():
        raise UnsupportedProblem(
            f"from the first source {int(holds[-1].sum())} of {units.count} units are reached",
            "use states=antichain",
        )
    return States(
        holds=holds,
        before=_before(links, len(downsets)),
        compute_s=holds @ units.compute_s,
        activation_bytes=holds @ units.activation_bytes,
        parameter_bytes=holds @ units.parameter_bytes,
        sent_bytes=np.zeros(len(holds))
        if sent == "free"
        else _senders(units, holds, sent) @ units.activation_bytes,
    )


def line_of_states(states: States) -> IntArray:
    """Positions of states from the smallest to the whole, each of which leads to the next."""
    at = states.count - 1
    line = [at]
    while len(words := np.flatnonzero(states.before[at])):
        at = 64 * int(words[-1]) + int(states.before[at, words[-1]]).bit_length() - 1
        line.append(at)
    return np.array(line[::-1], np.int64)


def states_along(states: States, positions: IntArray) -> States:
    """The states at these positions, each of which leads to the next."""
    return States(
        holds=states.holds[positions],
        before=_before(list(pairwise(range(len(positions)))), len(positions)),
        compute_s=states.compute_s[positions],
        activation_bytes=states.activation_bytes[positions],
        parameter_bytes=states.parameter_bytes[positions],
        sent_bytes=states.sent_bytes[positions],
    )


def _matrix(sets: Sequence[int], width: int) -> BoolArray:
    """Bit sets as rows."""
    size = -(-width // 8)
    packed = np.frombuffer(b"".join(each.to_bytes(size, "little") for each in sets), dtype=np.uint8)
    unpacked = np.unpackbits(packed.reshape(len(sets), size), axis=1, bitorder="little", count=width)
    return unpacked.astype(np.bool_)


def _before(links: Links, states: int) -> Words:
    before = np.zeros((states, -(-states // 64)), np.uint64)
    close_over(before, np.array(links, np.int64).reshape(-1, 2))
    return before


def _senders(units: Units, holds: BoolArray, sent: Sent) -> BoolArray:
    first = np.cumsum([0, *map(len, units.successors)])
    after = np.array([unit for successors in units.successors for unit in successors], dtype=np.int64)
    if sent == "cut":
        return cut_units(holds, first, after)
    ancestors = np.ascontiguousarray(_matrix(descendants(units.successors), units.count).T)
    return augmented_units(holds, ancestors, first, after)
