"""Kernels over suffixes of a linear order: by number of stages (PD-K) and by target period (PD-BS).

What a cut costs depends on the stages on both sides of it, so a suffix is known by what is in front of it too: by
the kind of that stage. A kind stands for a number of replicas; where no cut costs anything there is one kind.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray

UNREACHED = np.int64(2**62)
ShortArray = NDArray[np.int32]


class SuffixTables(NamedTuple):
    """What the kernels read of c choices of replicas over n places.

    period, room: (c, n+1, n+1) ns for each micro-batch, and the most micro-batches, of each interval as a stage.
    compute: (c, n+1) no period is shorter than the difference of two of them.
    replicas, kind: (c,) of each choice.
    pairs: (p, 3) kinds of two stages that may follow one another, and a row of `cuts`.
    cuts: (r, n+1) ns for each micro-batch of what crosses in front of each place.
    """

    period: IntArray
    room: IntArray
    compute: IntArray
    replicas: IntArray
    kind: IntArray
    pairs: IntArray
    cuts: IntArray


@kernel
def _fill(own: IntArray, value: np.int64) -> None:
    for kind in range(own.shape[0]):
        for q in range(own.shape[1]):
            own[kind, q] = value


@kernel
def _smallest_whole(own: IntArray, ahead: IntArray, follow: ShortArray) -> None:
    """At the first place nothing is in front: the best of all kinds, kept as kind 0. own: (kinds, devices+1)."""
    for first in range(own.shape[0]):
        for q in range(own.shape[1]):
            if own[first, q] < ahead[0, q]:
                ahead[0, q] = own[first, q]
                follow[0, q] = first


class Suffixes(NamedTuple):
    """What is known of each suffix; the shape of all four is said by who makes them.

    value: of the best stages of the suffix. follow: the kind of its first stage. end, chosen: of suffixes whose
    first stage is of this kind, its end and its choice of replicas.
    """

    value: IntArray
    follow: ShortArray
    end: ShortArray
    chosen: ShortArray


def _blank(shape: tuple[int, ...], value: np.int64) -> Suffixes:
    """Arrays are made here, not in kernels: numba takes a second to compile what makes them."""
    return Suffixes(np.full(shape, value), *(np.zeros(shape, np.int32) for _ in range(3)))


def smallest_bottleneck(
    tables: SuffixTables,
    kinds: int,
    devices: int,
    fewest: int,
    stages: int,
    micro_batches: int,
    counts_stages: bool,
) -> tuple[Suffixes, int, int]:
    """value[k, i, a, q]: smallest bottleneck of the operators from place i on, behind a stage of kind a.

    They are k stages on exactly q devices; the cut at i counts. At place 0, where nothing is in front, a = 0.
    The first stage of a suffix holds min(k, micro_batches) micro-batches, or, where counts_stages is false,
    ceil(q / d) of them. A whole plan has from `fewest` to `stages` stages; stages = 0 leaves their number open
    (only where counts_stages is false), and all of it is one layer. Returns arrays of shape (stages+1, n+1, kinds,
    devices+1), states reached, transitions tried. Of equal bottlenecks the one with the longest first stage, then
    with the longest second one, and so on.
    Source: PipeDream (SOSP 2019) section 3.1, with the stage count as a dimension (GraphPipe's SPP baseline).
    """
    places = tables.period.shape[1]
    found = _blank((stages + 1, places, kinds, devices + 1), UNREACHED)
    least = np.full((stages + 1, places), devices + 1)
    own = np.empty((kinds, devices + 1), np.int64)
    reached, tried = fill_bottlenecks(tables, found, least, own, fewest, micro_batches, counts_stages)
    return found, reached, tried


@kernel
def fill_bottlenecks(
    tables: SuffixTables,
    found: Suffixes,
    least: IntArray,
    own: IntArray,
    fewest: int,
    micro_batches: int,
    counts_stages: bool,
) -> tuple[int, int]:
    """The loops of smallest_bottleneck.

    least: (stages+1, n+1) the fewest devices of the suffixes that are reached.
    own: (kinds, devices+1) room for the suffixes of one place. Returns states reached, transitions tried.
    """
    dp, follow, end, chosen = found.value, found.follow, found.end, found.chosen
    period, room, replicas = tables.period, tables.room, tables.replicas
    compute, pairs = tables.compute, tables.pairs
    choices, n = period.shape[0], period.shape[1] - 1
    stages, kinds, devices = dp.shape[0] - 1, own.shape[0], own.shape[1] - 1
    for a in range(kinds):
        dp[0, n, a, 0] = 0
    least[0, n] = 0
    best = UNREACHED
    states = 0
    transitions = 0
    for k in range(min(1, stages), stages + 1):
        before = max(0, k - 1)
        live = min(k, micro_batches)
        for i in range(n - 1, -1, -1):
            _fill(own, UNREACHED)
            for c in range(choices):
                d = replicas[c]
                a = tables.kind[c]
                for j in range(n, i, -1):
                    # Only a smaller bottleneck than that of a whole plan is of use.
                    if compute[c, j] - compute[c, i] >= best:
                        continue
                    stage = period[c, i, j]
                    if stage >= best or room[c, i, j] < 1:
                        continue
                    most = devices
                    if counts_stages:
                        if room[c, i, j] < live:
                            continue
                    else:
                        most = min(devices, room[c, i, j] * d)
                    transitions += max(0, most + 1 - d)
                    for q in range(d + least[before, j], most + 1):
                        value = max(stage, dp[before, j, a, q - d])
                        if value < own[a, q]:
                            own[a, q] = value
                            end[k, i, a, q] = j
                            chosen[k, i, a, q] = c
            for q in range(devices, -1, -1):
                for a in range(kinds):
                    if own[a, q] < UNREACHED:
                        states += 1
                        least[k, i] = q
            if i == 0:
                _smallest_whole(own, dp[k, 0], follow[k, 0])
                continue
            for pair in range(pairs.shape[0]):
                a, b, row = pairs[pair]
                cut = tables.cuts[row, i]
                if cut >= best:
                    continue
                for q in range(least[k, i], devices + 1):
                    value = max(own[b, q], cut)
                    if own[b, q] >= UNREACHED or value > dp[k, i, a, q]:
                        continue
                    if value < dp[k, i, a, q] or own[b, q] < own[follow[k, i, a, q], q]:
                        dp[k, i, a, q] = value
                        follow[k, i, a, q] = b
        if k >= fewest:
            for q in range(devices + 1):
                best = min(best, dp[k, 0, 0, q])
    return states, transitions


NONE = np.int64(2**40)


def within_target(
    target: int,
    tables: SuffixTables,
    kinds: int,
    devices: int,
    micro_batches: int,
    counts_stages: bool,
) -> tuple[Suffixes, int, int]:
    """value[i, a, q]: least number of stages for the operators from place i on, behind a stage of kind a.

    They use exactly q devices. Every stage has a period of at most `target`, and every cut too, also that at i.
    A stage with s - 1 behind it holds min(s, micro_batches) micro-batches, or ceil(q / d) where counts_stages is
    false. Fewer stages behind never take more memory, so the least number is enough to know. Returns arrays of
    shape (n+1, kinds, devices+1), states reached, transitions tried.
    Source: the value is that of GraphPipe's DP (ASPLOS 2025), here for one whole linear order.
    """
    found = _blank((tables.period.shape[1], kinds, devices + 1), NONE)
    own = np.empty((kinds, devices + 1), np.int64)
    reached, tried = fill_fewest(target, tables, found, own, micro_batches, counts_stages)
    return found, reached, tried


@kernel
def fill_fewest(
    target: int,
    tables: SuffixTables,
    found: Suffixes,
    own: IntArray,
    micro_batches: int,
    counts_stages: bool,
) -> tuple[int, int]:
    """The loops of within_target. own: (kinds, devices+1) room for the suffixes of one place.

    Returns states reached, transitions tried.
    """
    fewest, follow, end, chosen = found.value, found.follow, found.end, found.chosen
    period, room, replicas = tables.period, tables.room, tables.replicas
    compute, pairs = tables.compute, tables.pairs
    choices, n = period.shape[0], period.shape[1] - 1
    kinds, devices = own.shape[0], own.shape[1] - 1
    for a in range(kinds):
        fewest[n, a, 0] = 0
    states = 0
    transitions = 0
    for i in range(n - 1, -1, -1):
        _fill(own, NONE)
        for c in range(choices):
            d = replicas[c]
            a = tables.kind[c]
            for j in range(i + 1, n + 1):
                if compute[c, j] - compute[c, i] > target:
                    break
                if period[c, i, j] > target or room[c, i, j] < 1:
                    continue
                most = devices if counts_stages else min(devices, room[c, i, j] * d)
                for q in range(d, most + 1):
                    transitions += 1
                    stages = fewest[j, a, q - d] + 1
                    if stages > NONE or (counts_stages and min(stages, micro_batches) > room[c, i, j]):
                        continue
                    if stages < own[a, q]:
                        own[a, q] = stages
                        end[i, a, q] = j
                        chosen[i, a, q] = c
        for a in range(kinds):
            for q in range(devices + 1):
                if own[a, q] < NONE:
                    states += 1
        if i == 0:
            _smallest_whole(own, fewest[0], follow[0])
            continue
        for pair in range(pairs.shape[0]):
            a, b, row = pairs[pair]
            if tables.cuts[row, i] > target:
                continue
            for q in range(devices + 1):
                if own[b, q] < fewest[i, a, q]:
                    fewest[i, a, q] = own[b, q]
                    follow[i, a, q] = b
    return states, transitions


def compile_suffixes() -> None:
    """Compile the kernels of this file, on one place and one device."""
    one, flat, deep = np.ones(1, np.int64), np.ones((1, 2), np.int64), np.ones((1, 2, 2), np.int64)
    tables = SuffixTables(deep, deep, flat, one, one - 1, np.zeros((1, 3), np.int64), flat)
    smallest_bottleneck(tables, 1, 1, 0, 1, 1, True)
    within_target(1, tables, 1, 1, 1, True)
