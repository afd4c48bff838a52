"""The figures of stages in the class bound: how a stage runs, what that costs, and tables of stages."""

from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.domain.recomputation import Recompute

FAR = 2**61
"""Later than any time. Twice as much still is an integer of 64 bits."""
MANY = 2**40
"""More live micro-batches than any time is asked for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a stage runs, whatever is in it.

    replicas: of the stage. turns: how many of them take micro-batches in turn; 1 where they share each.
    sharers: at most so many replicas share a micro-batch with the same samples each.
    degree: devices of a replica. recompute: of the stage. as_layers: operators run by ways that the pin of
    recomputation permits.
    """

    replicas: int
    turns: int
    sharers: int
    degree: int
    recompute: Recompute
    as_layers: bool = False

    @property
    def devices(self) -> int:
        """Devices of the stage."""
        return self.replicas * self.degree

    def samples(self, micro_batch: int) -> int:
        """Samples of a micro-batch that a replica runs."""
        return -(-micro_batch * self.turns // self.replicas)


def most_sharers(micro_batch: int, samples: int, devices: int) -> int:
    """The most replicas of which each runs that many samples of a micro-batch."""
    return min(devices, micro_batch if samples == 1 else (micro_batch - 1) // (samples - 1))


@dataclass(frozen=True, slots=True)
class Figures:
    """The least of each operator over its ways, or sums of these over each run, each figure on its own.

    At some samples on a replica; shape (operators,), or (n + 1, n + 1) by first place and end.

    forward, backward, input_gradient: ns. both: forward and backward of one way. crossing: forward and input
    gradient of one way. saved: bytes.
    """

    forward: IntArray
    backward: IntArray
    input_gradient: IntArray
    both: IntArray
    crossing: IntArray
    saved: IntArray


@dataclass(frozen=True, slots=True)
class StageRows:
    """Runs of operators, each as a stage under some choice; arrays of shape (rows,), ascending in `end`.

    first, end: the stage holds the operators at places first … end - 1. devices: that it takes. degree: devices of
    a replica. again: 1 where the stage recomputes. sharers, turns: of its replicas. runs: micro-batches of its
    busiest lane.
    forward, backward, input_gradient, both, crossing: of one micro-batch, as in `Figures`, recomputation included.
    busy, busy_crossing: of all micro-batches on the busiest lane; crossing leaves weight gradients out.
    update: once for a mini-batch. live: the most live micro-batches, `MANY` where memory sets no limit.
    """

    first: IntArray
    end: IntArray
    devices: IntArray
    degree: IntArray
    again: IntArray
    sharers: IntArray
    turns: IntArray
    runs: IntArray
    forward: IntArray
    backward: IntArray
    input_gradient: IntArray
    both: IntArray
    crossing: IntArray
    busy: IntArray
    busy_crossing: IntArray
    update: IntArray
    live: IntArray

    def chosen(self, which: "np.ndarray[tuple[int], np.dtype[np.bool_]] | IntArray") -> "StageRows":
        """The rows that a mask or their numbers name."""
        numbers = np.flatnonzero(which) if which.dtype == np.bool_ else which
        return StageRows(*(getattr(self, name)[numbers] for name in StageRows.__slots__))


@dataclass(frozen=True, slots=True)
class Within:
    """Which stages are looked at.

    most_ns: those that can be part of a plan of at most that time. fewest_before, fewest_behind: the devices that
    the operators before and behind each place need by then, shape (n + 1,). cuts: where stages begin and end.
    memory: those that memory leaves.
    """

    most_ns: int
    fewest_before: IntArray
    fewest_behind: IntArray
    cuts: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    memory: bool = True
