"""Where a pipeline may be cut: downsets of the units, with what each sends and costs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.coarse import COARSER
from pipebench.algorithms.graph_orders import descendants
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import FloatArray, IntArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench_pipedream.downsets import list_downsets, reached_downsets
from pipebench_pipedream.paper_costs import Units

BoolArray = NDArray[np.bool_]


@kernel
def inside(words: NDArray[np.uint64]) -> BoolArray:  # pragma: no cover - compiled
    """For bit sets as rows of words, ascending by size: whether the first is a proper part of the second."""
    n, width = words.shape
    made = np.zeros((n, n), dtype=np.bool_)
    for j in range(n):
        for k in range(j):
            part = True
            for word in range(width):
                if words[k, word] & ~words[j, word]:
                    part = False
                    break
            made[k, j] = part
    return made


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
    before: shape (states, states), whether the first may be cut off in front of the second.
    compute_s, activation_bytes, parameter_bytes: sums over the units of a state.
    sent_bytes: what a state sends to the units outside.
    """

    holds: BoolArray
    before: BoolArray
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
    related: BoolArray | None = None
    if kind == "chain":
        downsets, held = [], 0
        for unit in order:
            held |= 1 << unit
            downsets.append(held)
    elif kind == "antichain":
        try:
            downsets = list_downsets(units.successors, MOST_STATES)[1:]
        except UnsupportedProblem as error:
            raise UnsupportedProblem(
                error.message, f"use states=chain, or branches=joined; or {COARSER}"
            ) from None
    else:
        downsets, related = reached_downsets(units.successors, MOST_STATES)
    holds = _matrix(downsets, units.count)
    if not holds[-1].all():
        raise UnsupportedProblem(
            f"from the first source {int(holds[-1].sum())} of {units.count} units are reached",
            "use states=antichain",
        )
    return States(
        holds=holds,
        before=inside(_words(downsets, units.count)) if related is None else related,
        compute_s=holds @ units.compute_s,
        activation_bytes=holds @ units.activation_bytes,
        parameter_bytes=holds @ units.parameter_bytes,
        sent_bytes=np.zeros(len(holds))
        if sent == "free"
        else _senders(units, holds, sent) @ units.activation_bytes,
    )


def _matrix(sets: Sequence[int], width: int) -> BoolArray:
    """Bit sets as rows."""
    size = -(-width // 8)
    packed = np.frombuffer(b"".join(each.to_bytes(size, "little") for each in sets), dtype=np.uint8)
    unpacked = np.unpackbits(packed.reshape(len(sets), size), axis=1, bitorder="little", count=width)
    return unpacked.astype(np.bool_)


def _words(sets: Sequence[int], width: int) -> NDArray[np.uint64]:
    size = 8 * -(-width // 64)
    return np.frombuffer(b"".join(each.to_bytes(size, "little") for each in sets), "<u8").reshape(len(sets), -1)


def _senders(units: Units, holds: BoolArray, sent: Sent) -> BoolArray:
    first = np.cumsum([0, *map(len, units.successors)])
    after = np.array([unit for successors in units.successors for unit in successors], dtype=np.int64)
    if sent == "cut":
        return cut_units(holds, first, after)
    ancestors = np.ascontiguousarray(_matrix(descendants(units.successors), units.count).T)
    return augmented_units(holds, ancestors, first, after)
