"""Algorithm 1: consecutive blocks and devices for a given number of stages (RaNNC, section III-C)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

INFEASIBLE = 2**61
Prune = Literal["none", "stages", "printed"]
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


def one_label(
    times: RunTimes,
    stages: int,
    devices: int,
    prune: Prune = "none",
    out_of_time: Callable[[], bool] = lambda: False,
) -> CutTables:
    """Algorithm 1 for `stages` stages on exactly `devices` devices.

    For each (s, b, d) it keeps one pair of longest times, that of the smallest sum. The sum of two maxima is not
    the maximum of sums, so the value may be above the optimum.

    prune: what is skipped once no d' was feasible. `printed` never looks at fewer devices again, `stages` does so
        again for each s, `none` always looks.
    out_of_time: asked now and then; once it says so, there is no cut.
    """
    blocks = times.blocks
    shape = (stages + 1, blocks + 1, devices + 1)
    value, longest = np.full(shape, INFEASIBLE), np.zeros((2, *shape), np.int64)
    link = np.zeros((*shape, 2), np.int64)
    value[0, 0, 0] = 0
    least_devices, steps = 1, 0
    for s in range(1, stages + 1):
        if prune == "stages":
            least_devices = 1
        for b in range(s, blocks - stages + s + 1):
            if out_of_time():
                return CutTables({}, steps)
            added, least_devices = _label_of_blocks(
                times.forward,
                times.backward,
                times.extra,
                value,
                longest,
                link,
                s,
                b,
                devices - (stages - s),
                least_devices,
                prune != "none",
            )
            steps += int(added)
    if value[stages, blocks, devices] >= INFEASIBLE:
        return CutTables({}, steps)
    found: list[tuple[int, int]] = []
    b, d = blocks, devices
    for s in range(stages, 0, -1):
        before_b, before_d = (int(each) for each in link[s, b, d])
        found.append((b, d - before_d))
        b, d = before_b, before_d
    return CutTables({stages: StageCut(int(value[stages, blocks, devices]), tuple(reversed(found)))}, steps)


def all_labels(
    times: RunTimes, most_stages: int, devices: int, out_of_time: Callable[[], bool] = lambda: False
) -> CutTables:
    """The smallest longest forward + longest backward for every number of stages up to `most_stages`.

    Exact: for each (s, b, d) it keeps every pair of longest times that no other pair beats in both.

    out_of_time: asked now and then; once it says so, there are the cuts of the numbers of stages that are done.
    """
    labels = 8
    while (found := _labels(times, most_stages, devices, labels, out_of_time)) is None:
        labels *= 4
        if labels > MOST_LABELS:
            raise MemoryError("the stage search has too many labels")
    blocks, count, link = times.blocks, found.count, found.link
    cuts: dict[int, StageCut] = {}
    for stages in range(1, found.stages + 1):
        here = count[stages, blocks, devices]
        if here == 0:
            continue
        sums = found.forward[stages, blocks, devices, :here] + found.backward[stages, blocks, devices, :here]
        label = int(np.argmin(sums))
        ends: list[tuple[int, int]] = []
        b, d, at = blocks, devices, label
        for s in range(stages, 0, -1):
            before_b, before_d, before = (int(each) for each in link[s, b, d, at])
            ends.append((b, d - before_d))
            b, d, at = before_b, before_d, before
        cuts[stages] = StageCut(int(sums[label]), tuple(reversed(ends)))
    return CutTables(cuts, found.steps)


@dataclass(frozen=True, slots=True)
class _Labels:
    """The labels of every (s, b, d) up to `stages` stages.

    forward, backward: longest times in ns, shape (s, b, d, label); count: of labels. link: (b, d, label) before.
    """

    forward: IntArray
    backward: IntArray
    count: IntArray
    link: NDArray[np.int16]
    stages: int
    steps: int


def _labels(
    times: RunTimes, most_stages: int, devices: int, most: int, out_of_time: Callable[[], bool]
) -> _Labels | None:
    """At most `most` labels of each state; None where they are too few."""
    shape = (most_stages + 1, times.blocks + 1, devices + 1)
    forward, backward = np.zeros((*shape, most), np.int64), np.zeros((*shape, most), np.int64)
    count, link = np.zeros(shape, np.int64), np.zeros((*shape, most, 3), np.int16)
    count[0, 0, 0] = 1
    steps = 0
    for s in range(1, most_stages + 1):
        for b in range(s, times.blocks + 1):
            if out_of_time():
                return _Labels(forward, backward, count, link, s - 1, steps)
            added = int(
                _labels_of_blocks(times.forward, times.backward, times.extra, forward, backward, count, link, s, b)
            )
            if added < 0:
                return None
            steps += added
    return _Labels(forward, backward, count, link, most_stages, steps)


@kernel
def _label_of_blocks(
    forward: IntArray,
    backward: IntArray,
    extra: IntArray,
    value: IntArray,
    longest: IntArray,
    link: IntArray,
    s: int,
    b: int,
    most_devices: int,
    least_devices: int,
    prunes: bool,
) -> tuple[int, int]:
    """The label of the first b blocks in s stages, for every number of devices. The steps, and the fewest devices
    from then on.
    """
    at = min(s, forward.shape[0]) - 1
    steps = 0
    for d in range(most_devices, max(least_devices, s) - 1, -1):
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
                    link[s, b, d, 0] = before
                    link[s, b, d, 1] = spent
        if prunes and value[s, b, d] >= INFEASIBLE:
            return steps, d + 1
    return steps, least_devices


@kernel
def _labels_of_blocks(
    forward: IntArray,
    backward: IntArray,
    extra: IntArray,
    best_forward: IntArray,
    best_backward: IntArray,
    count: IntArray,
    link: NDArray[np.int16],
    s: int,
    b: int,
) -> int:
    """Labels of the first b blocks in s stages, for every number of devices. The steps; -1 for too few labels."""
    devices, most = count.shape[2] - 1, link.shape[3]
    at = min(s, forward.shape[0]) - 1
    steps = 0
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
                        return -1
                    best_forward[s, b, d, kept] = new_forward
                    best_backward[s, b, d, kept] = new_backward
                    link[s, b, d, kept, 0] = before
                    link[s, b, d, kept, 1] = spent
                    link[s, b, d, kept, 2] = label
                    held = kept + 1
        count[s, b, d] = held
    return steps
