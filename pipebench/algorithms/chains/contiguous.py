"""The exact contiguous optimum under 1F1B*: the shortest period over all cuts of a chain into stages."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pipebench.algorithms.chains.chain import Chain, ChainArrays
from pipebench.algorithms.chains.one_f_one_b_star import minimal_period
from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench.domain.workload import pin_flag

_FAR = 2**62


@dataclass(frozen=True, slots=True)
class Partition:
    """Stages [bounds[i], bounds[i + 1]) of a chain and the shortest period of 1F1B* on them, in ns."""

    bounds: tuple[int, ...]
    period_ns: int


@dataclass(frozen=True, slots=True)
class StageRange:
    """How many stages a partition may have: least … most."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found below its cutoff (None: nothing), and a period that no partition is below."""

    best: Partition | None
    lower_ns: int
    probes: int
    states: int


@kernel
def decide(
    chain: ChainArrays, period: int, least: int, most: int, memory: int, both_ways: bool
) -> tuple[int, int, IntArray]:
    """Whether least … most stages of memory `memory` bytes each can run at `period` ns.

    Returns the fewest stages that can (0: none can), the number of states expanded, and their bounds,
    shape (stages + 1,). both_ways: a necessary condition on links that carry both directions at once, see
    contiguous_plan; False: 1F1B*.

    delay[j, k] is the least delay in front of layer k when layers k … L-1, and the cut before k, form j
    stages. It is a multiple of the period (closed groups) less what is left in the open group, so that one
    division a state replaces the ceilings of MadPipe's formulas.
    """
    length = len(chain.work) - 1
    delay = np.full((most + 1, length + 1), _FAR, np.int64)
    stage_end = np.zeros((most + 1, length + 1), np.int64)
    delay[0, length] = 0
    states = 0
    stages = 0
    for j in range(most):
        carried = (most - j - 1) * (period - chain.every_ns)
        for end in range(length, 0, -1):
            before = delay[j, end]
            if before == _FAR:
                continue
            closed = -(-before // period)
            room = closed * period - before
            workspace = 0
            held = chain.every_held
            shared_each = 0
            for first in range(end - 1, -1, -1):
                work = chain.every_ns + chain.work[end] - chain.work[first]
                if work > period:
                    break
                states += 1
                workspace = max(workspace, chain.workspace[first])
                held += chain.held[first + 1] - chain.held[first]
                for entry in range(chain.shared_start[first], chain.shared_start[first + 1]):
                    if chain.shared_next[entry] < end:
                        held -= chain.shared_bytes[entry]
                for entry in range(chain.again_start[first], chain.again_start[first + 1]):
                    if chain.again_next[entry] < end:
                        shared_each += chain.again_bytes[entry]
                each = chain.every_each + chain.each[end] - chain.each[first] - shared_each
                if held + workspace + each > memory:
                    break
                if chain.work[first] > carried:
                    continue
                group = closed if work <= room else closed + 1
                total = held + workspace + chain.cut_held[first] + chain.cut_held[end]
                total += max(1, group) * (each + chain.entering[first])
                if total > memory:
                    continue
                behind = before + work if work <= room else closed * period + work
                if first > 0:
                    transfer = chain.cut_ns[chain.hop[j], first]
                    if transfer > (2 * period if both_ways else period):
                        continue
                    reached = group * period
                    if both_ways or behind + transfer <= reached:
                        behind += transfer
                    else:
                        behind = reached + transfer
                if behind < delay[j + 1, first]:
                    delay[j + 1, first] = behind
                    stage_end[j + 1, first] = end
        if j + 1 >= least and delay[j + 1, 0] < _FAR:
            stages = j + 1
            break
    bounds = np.zeros(stages + 1, np.int64)
    for i in range(stages):
        bounds[i + 1] = stage_end[stages - i, bounds[i]]
    return stages, states, bounds


def partition_at(chain: Chain, bounds: tuple[int, ...], memory: int) -> Partition | None:
    """The partition with its shortest period under 1F1B*; None when a stage does not fit with one micro-batch."""
    live = np.array([chain.most_live(first, end, memory) for first, end in pairwise(bounds)], np.int64)
    period = int(minimal_period(chain.items(bounds), live))
    return None if period < 0 else Partition(bounds, period)


def longest_period(chain: Chain) -> int:
    """A period (ns) at which any partition has one live micro-batch a stage: all work and cuts in a row."""
    work = int(chain.arrays.work[-1]) + chain.length * chain.arrays.every_ns
    return max(1, work + int(chain.arrays.cut_ns.max(axis=0).sum()))


def shortest_period(chain: Chain, stages: StageRange) -> int:
    """No partition is below: an equal share of all work, the heaviest layer, 1 ns.

    Each with what every stage takes: a device has a stage at least.
    """
    work = chain.arrays.work
    return max(1, chain.arrays.every_ns + max(int(np.diff(work).max()), -(-int(work[-1]) // stages.most)))


def contiguous_optimum(
    chain: Chain,
    stages: StageRange,
    memory: int,
    *,
    lower_ns: int = 1,
    below_ns: int | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Search:
    """The partition of shortest period under 1F1B* in which each stage fits in `memory` bytes.

    lower_ns: a period that is known to be a lower bound. below_ns: only look for shorter periods. stop: asked
    before each probe; when it says so the best so far is returned and lower_ns is what was proven by then.
    """
    low = max(lower_ns, shortest_period(chain, stages))
    high = longest_period(chain) + 1 if below_ns is None else below_ns
    best: Partition | None = None
    probes = states = 0
    period = high - 1
    while low < high and not stop():
        count, expanded, found = decide(chain.arrays, period, stages.least, stages.most, memory, False)
        probes += 1
        states += expanded
        if count:
            best = partition_at(chain, tuple(map(int, found)), memory)
            if best is None or best.period_ns > period:
                raise AssertionError("the decision and 1F1B* disagree")
            high = best.period_ns
        else:
            low = period + 1
        period = (low + high - 1) // 2
    return Search(best, low if low < high else high, probes, states)


def least_memory(chain: Chain, stages: StageRange) -> int:
    """The least device memory, in bytes, with which some partition can run at some period."""
    period = longest_period(chain)
    cuts = 2 * int(chain.arrays.cut_held.sum() + chain.arrays.entering.sum())
    high = chain.memory(0, chain.length).peak(1) + cuts
    low = 0
    while low < high:
        memory = (low + high) // 2
        if decide(chain.arrays, period, stages.least, stages.most, memory, False)[0]:
            high = memory
        else:
            low = memory + 1
    return low


def stage_range(problem: Problem) -> StageRange:
    """How many stages of one device each: the pinned pipeline degree, else anything up to the devices.

    Raises UnsupportedProblem for the sync regime, replicas, tensor parallelism, several stages a device and
    devices of several types; InfeasibleProblem when the pinned degree exceeds the devices.
    """
    pins, cluster = problem.pins, problem.cluster
    if problem.regime.mode != "async":
        raise UnsupportedProblem("this planner is for the async regime (periodic schedules, no flush)")
    for name in ("data_parallel", "tensor_parallel", "virtual_stages"):
        pinned = getattr(pins, name)
        if pinned is not None and pinned > 1:
            raise UnsupportedProblem(
                f"{name} is pinned to {pinned}; this planner puts one stage on one device",
                f"give {pin_flag(name)} 1, or leave it out",
            )
    if len(set(cluster.devices)) > 1:
        raise UnsupportedProblem("this planner needs devices of one type")
    if pins.pipeline is None:
        return StageRange(1, cluster.size)
    if pins.pipeline > cluster.size:
        raise InfeasibleProblem(f"{pins.pipeline} stages are pinned, there are {cluster.size} devices")
    return StageRange(pins.pipeline, pins.pipeline)
