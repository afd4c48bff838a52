"""Times of all runs of blocks as stages, INFEASIBLE where they do not fit: what the stage search works on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipebench.costs.formula import Memory
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench_rannc.runs import BlockRuns
from pipebench_rannc.space import MicroBatchFlow
from pipebench_rannc.stage_dp import INFEASIBLE, RunTimes
from pipebench_rannc.variants import Differences

BoolArray = NDArray[np.bool_]
MOST_BYTES = 3 * 10**9


@dataclass(frozen=True, slots=True)
class StageTables:
    """What the stage search works on.

    times: of every run as a stage.
    recompute: whether the stage recomputes, shape (classes, D + 1, k + 1, k + 1).
    """

    times: RunTimes
    recompute: BoolArray


def printed_tables(
    runs: BlockRuns,
    flow: MicroBatchFlow,
    counts: tuple[int, ...],
    limit_bytes: int,
    chosen: Differences,
    recompute: bool,
) -> StageTables:
    """The tables of Algorithm 1: all stages recompute or none, and all micro-batches are in flight (gpipe)."""
    made = _Tables(runs, flow, 1)
    live = flow.micro_batches if chosen.in_flight == "all" else 1
    for replicas in counts:
        forward, backward, there, back = made.parts(replicas, chosen.communication == "both")
        if recompute:
            backward = backward + forward
        fits = made.memory(replicas, recompute).peak(live) <= limit_bytes
        if chosen.communication == "both":
            made.extra[0, replicas], made.extra[1, replicas] = there, back
        else:
            forward, backward = forward + there, backward + back
        made.put(0, replicas, fits, forward, backward, recompute)
    return made.tables()


def tables_from_the_end(
    runs: BlockRuns,
    flow: MicroBatchFlow,
    counts: tuple[int, ...],
    limit_bytes: int,
    pinned: bool | None,
    most_stages: int,
) -> StageTables:
    """The tables for 1F1B: the s-th stage from the end keeps s micro-batches in flight.

    Blocks are numbered from the last. A stage recomputes where it must.

    pinned: whether every stage recomputes, or none.
    """
    classes = classes_of(flow, most_stages)
    made = _Tables(runs, flow, classes)
    for replicas in counts:
        forward, backward, there, back = (_turn_table(each) for each in made.parts(replicas, False))
        for recompute in (True, False):
            if pinned is not None and pinned != recompute:
                continue
            again = forward if recompute else 0
            needs = made.memory(replicas, recompute)
            for live in range(1, classes + 1):
                fits = _turn_table(needs.peak(live)) <= limit_bytes
                made.put(live - 1, replicas, fits, forward + there, backward + back + again, recompute)
    return made.tables()


def classes_of(flow: MicroBatchFlow, most_stages: int) -> int:
    """Of 1F1B: the numbers of micro-batches in flight that the tables tell apart."""
    return min(most_stages, flow.micro_batches)


def refuse_large(blocks: int, devices: int, classes: int) -> None:
    """Raise UnsupportedProblem where the tables would be larger than MOST_BYTES."""
    size_bytes = 17 * classes * (devices + 1) * (blocks + 1) ** 2
    if size_bytes > MOST_BYTES:
        raise UnsupportedProblem(
            f"all runs of {blocks} blocks on up to {devices} devices make tables of {size_bytes / 1e9:.1f} GB, "
            f"more than {MOST_BYTES / 1e9:g} GB",
            "use fewer blocks, such as rannc[blocks=32]",
        )


class _Tables:
    def __init__(self, runs: BlockRuns, flow: MicroBatchFlow, classes: int) -> None:
        size, devices = runs.size + 1, flow.shape.devices
        refuse_large(runs.size, devices, classes)
        self._runs = runs
        self._flow = flow
        shape = (classes, devices + 1, size, size)
        self._forward: IntArray = np.full(shape, INFEASIBLE)
        self._backward: IntArray = np.full(shape, INFEASIBLE)
        self._recompute: BoolArray = np.zeros(shape, np.bool_)
        self.extra: IntArray = np.zeros((2, devices + 1, size, size), np.int64)

    def samples(self, replicas: int) -> int:
        return -(-self._flow.micro_batch // replicas)

    def parts(self, replicas: int, received: bool) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Forward, backward, and the messages of both, in ns."""
        level = self._runs.model.problem.cluster.levels[0]
        forward, backward = self._runs.times(self.samples(replicas))
        return forward, backward, *self._runs.messages(self._flow.micro_batch, replicas, level, received)

    def memory(self, replicas: int, recompute: bool) -> Memory[IntArray]:
        return self._runs.memory(
            self.samples(replicas), replicas * self._flow.shape.copies, "stage" if recompute else "none"
        )

    def put(
        self, of_class: int, replicas: int, fits: BoolArray, forward: IntArray, backward: IntArray, recompute: bool
    ) -> None:
        at = of_class, replicas
        self._forward[at] = np.where(fits, forward, self._forward[at])
        self._backward[at] = np.where(fits, backward, self._backward[at])
        self._recompute[at] = np.where(fits, recompute, self._recompute[at])

    def tables(self) -> StageTables:
        return StageTables(RunTimes(self._forward, self._backward, self.extra), self._recompute)


def _turn_table(table: IntArray) -> IntArray:
    """The table [i, j] of blocks that are numbered from the last."""
    return np.ascontiguousarray(table[::-1, ::-1].T)
