"""Algorithm 1: consecutive blocks and devices for a given number of stages (RaNNC, section III-C)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

INFEASIBLE = 2**61
Prune = Literal["none", "stages", "printed"]
PRUNES: dict[Prune, int] = {"none": 0, "stages": 1, "printed": 2}
MOST_LABELS = 4096


@dataclass(frozen=True, slots=True)
class StageCut:
    """A cut into stages.

    value: longest forward + longest backward of a stage, in ns.
    stages: (end, devices) of each stage, in order.
    """

    value: int
    stages: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Times of every run of blocks as a stage, in ns; INFEASIBLE where it does not fit.

    forward, backward: shape (classes, D + 1, k + 1, k + 1), by class, replicas and [i, j]. The s-th stage belongs
        to class min(s, classes) - 1.
    extra: added to the value only, in both directions, shape (2, D + 1, k + 1, k + 1).
    """

    forward: IntArray
    backward: IntArray
    extra: IntArray

    @property
    def blocks(self) -> int:
        """k."""
        return int(self.forward.shape[2]) - 1


@dataclass(frozen=True, slots=True)
class CutTables:
    """What a search found.

    cuts: the best cut by number of stages.
    transitions: inner steps of the search.
    """

    cuts: dict[int, StageCut]
    transitions: int


def one_label(times: RunTimes, stages: int, devices: int, prune: Prune = "none") -> CutTables:
    """Algorithm 1 for `stages` stages on exactly `devices` devices.

    For each (s, b, d) it keeps one pair of longest times, that of the smallest sum. The sum of two maxima is not
    the maximum of sums, so the value may be above the optimum.

    prune: what is skipped once no d' was feasible. `printed` never looks at fewer devices again, `stages` does so
        again for each s, `none` always looks.
    """
    value, back_block, back_devices, steps = _one_label(
        times.forward, times.backward, times.extra, stages, devices, PRUNES[prune]
    )
    blocks = times.blocks
    if value[stages, blocks, devices] >= INFEASIBLE:
        return CutTables({}, int(steps))
    found: list[tuple[int, int]] = []
    b, d = blocks, devices
    for s in range(stages, 0, -1):
        before = int(back_devices[s, b, d])
        found.append((b, d - before))
        b, d = int(back_block[s, b, d]), before
    return CutTables({stages: StageCut(int(value[stages, blocks, devices]), tuple(reversed(found)))}, int(steps))


def all_labels(times: RunTimes, most_stages: int, devices: int) -> CutTables:
    """The smallest longest forward + longest backward for every number of stages up to `most_stages`.

    Exact: for each (s, b, d) it keeps every pair of longest times that no other pair beats in both.
    """
    labels = 8
    while True:
        forward, backward, count, link, steps = _all_labels(
            times.forward, times.backward, times.extra, most_stages, devices, labels
        )
        if steps >= 0:
            break
        labels *= 4
        if labels > MOST_LABELS:
            raise MemoryError("the stage search has too many labels")
    blocks = times.blocks
    cuts: dict[int, StageCut] = {}
    for stages in range(1, most_stages + 1):
        here = count[stages, blocks, devices]
        if here == 0:
            continue
        sums = forward[stages, blocks, devices, :here] + backward[stages, blocks, devices, :here]
        label = int(np.argmin(sums))
        found: list[tuple[int, int]] = []
        b, d, at = blocks, devices, label
        for s in range(stages, 0, -1):
            before_b, before_d, before = (int(each) for each in link[s, b, d, at])
            found.append((b, d - before_d))
            b, d, at = before_b, before_d, before
        cuts[stages] = StageCut(int(sums[label]), tuple(reversed(found)))
    return CutTables(cuts, int(steps))


@kernel
def _one_label(
    forward: IntArray, backward: IntArray, extra: IntArray, stages: int, devices: int, prune: int
) -> tuple[IntArray, IntArray, IntArray, int]:
    classes, _, blocks = forward.shape[0], forward.shape[1] - 1, forward.shape[2] - 1
    value = np.full((stages + 1, blocks + 1, devices + 1), INFEASIBLE)
    longest = np.zeros((2, stages + 1, blocks + 1, devices + 1), np.int64)
    back_block = np.zeros((stages + 1, blocks + 1, devices + 1), np.int64)
    back_devices = np.zeros((stages + 1, blocks + 1, devices + 1), np.int64)
    value[0, 0, 0] = 0
    least_devices = 1
    steps = 0
    for s in range(1, stages + 1):
        at = min(s, classes) - 1
        if prune == 1:
            least_devices = 1
        for b in range(s, blocks - stages + s + 1):
            for d in range(devices - (stages - s), max(least_devices, s) - 1, -1):
                for before in range(s - 1, b):
                    for spent in range(s - 1, d):
                        if value[s - 1, before, spent] >= INFEASIBLE:
                            continue
                        steps += 1
                        own = forward[at, d - spent, before, b]
                        if own >= INFEASIBLE:
                            continue
                        back = backward[at, d - spent, before, b]
                        was_forward = longest[0, s - 1, before, spent]
                        was_back = longest[1, s - 1, before, spent]
                        found = max(own + extra[0, d - spent, before, b], was_forward)
                        found += max(back + extra[1, d - spent, before, b], was_back)
                        if found < value[s, b, d]:
                            value[s, b, d] = max(found, value[s - 1, before, spent])
                            longest[0, s, b, d] = max(own, was_forward)
                            longest[1, s, b, d] = max(back, was_back)
                            back_block[s, b, d] = before
                            back_devices[s, b, d] = spent
                if prune > 0 and value[s, b, d] >= INFEASIBLE:
                    least_devices = d + 1
                    break
    return value, back_block, back_devices, steps


@kernel
def _all_labels(
    forward: IntArray, backward: IntArray, extra: IntArray, stages: int, devices: int, most: int
) -> tuple[IntArray, IntArray, IntArray, IntArray, int]:
    """The kernel of all_labels. The number of steps is -1 when `most` labels are too few."""
    classes, _, blocks = forward.shape[0], forward.shape[1] - 1, forward.shape[2] - 1
    best_forward = np.zeros((stages + 1, blocks + 1, devices + 1, most), np.int64)
    best_backward = np.zeros((stages + 1, blocks + 1, devices + 1, most), np.int64)
    count = np.zeros((stages + 1, blocks + 1, devices + 1), np.int64)
    link = np.zeros((stages + 1, blocks + 1, devices + 1, most, 3), np.int16)
    count[0, 0, 0] = 1
    steps = 0
    for s in range(1, stages + 1):
        at = min(s, classes) - 1
        for b in range(s, blocks + 1):
            for d in range(s, devices + 1):
                held = 0
                for before in range(s - 1, b):
                    for spent in range(s - 1, d):
                        labels = count[s - 1, before, spent]
                        if labels == 0:
                            continue
                        own = forward[at, d - spent, before, b]
                        if own >= INFEASIBLE:
                            continue
                        own += extra[0, d - spent, before, b]
                        back = backward[at, d - spent, before, b] + extra[1, d - spent, before, b]
                        for label in range(labels):
                            steps += 1
                            new_forward = max(own, best_forward[s - 1, before, spent, label])
                            new_backward = max(back, best_backward[s - 1, before, spent, label])
                            beaten = False
                            kept = 0
                            for other in range(held):
                                was_forward = best_forward[s, b, d, other]
                                was_backward = best_backward[s, b, d, other]
                                if was_forward <= new_forward and was_backward <= new_backward:
                                    beaten = True
                                    break
                            if beaten:
                                continue
                            for other in range(held):
                                was_forward = best_forward[s, b, d, other]
                                was_backward = best_backward[s, b, d, other]
                                if new_forward <= was_forward and new_backward <= was_backward:
                                    continue
                                best_forward[s, b, d, kept] = was_forward
                                best_backward[s, b, d, kept] = was_backward
                                link[s, b, d, kept, 0] = link[s, b, d, other, 0]
                                link[s, b, d, kept, 1] = link[s, b, d, other, 1]
                                link[s, b, d, kept, 2] = link[s, b, d, other, 2]
                                kept += 1
                            if kept == most:
                                return best_forward, best_backward, count, link, -1
                            best_forward[s, b, d, kept] = new_forward
                            best_backward[s, b, d, kept] = new_backward
                            link[s, b, d, kept, 0] = before
                            link[s, b, d, kept, 1] = spent
                            link[s, b, d, kept, 2] = label
                            held = kept + 1
                count[s, b, d] = held
    return best_forward, best_backward, count, link, steps
