"""Where a pipeline may be cut: downsets of the units, with the sums that the cost model needs of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.downsets import list_downsets
from pipebench.algorithms.reachability import descendants
from pipebench.costs.quantise import FloatArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench_pipedream.antichains import reached_downsets
from pipebench_pipedream.paper_units import Units
from pipebench_pipedream.senders import BoolArray, augmented_units, cut_units, inside

Sent = Literal["cut", "antichain", "free"]
MOST_STATES = 20_000


@dataclass(frozen=True, slots=True)
class States:
    """Downsets in topological order, the last one holds all units.

    holds: (states, units). before: (states, states), whether the first may be cut off in front of the second.
    Cumulative sums over the units of a state: compute_s, activation_bytes, parameter_bytes; sent_bytes: what it
    sends to the units outside. All four of shape (states,).
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

    sent: `cut` counts units that something outside reads; `antichain` those of the released optimizer's augmented
    antichain, which also counts a unit that several members of the antichain read and nothing outside; `free`
    none.
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
            raise UnsupportedProblem(error.message, "use states=chain, or branches=joined") from None
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
