"""MadPipe's class by enumeration, and its estimates in plain Python, as the notes state them."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product

from pipebench.algorithms.chains.chain import Chain, build_chain
from pipebench.algorithms.graph_orders import linearise
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench_madpipe.allocation import Allocation
from pipebench_madpipe.label_search import Class
from pipebench_madpipe.pattern import periodic_schedule, plan_pattern
from pipebench_madpipe.periodic_bnb import search
from pipebench_madpipe.stage_table import run_table
from tests.algorithms.enumeration import Figures, all_bounds

NODES = 200_000


def chain_of(problem: Problem) -> Chain:
    return build_chain(CostModel(problem), linearise(problem.profile.graph), problem.mini_batch)


def class_of(problem: Problem) -> Class:
    table = run_table(chain_of(problem))
    return Class(table, problem.cluster.memory_bytes, 1, problem.cluster.size)


def allocations(length: int, gpus: int) -> Iterator[Allocation]:
    """Every allocation with at most one special GPU."""
    for bounds in all_bounds(length, length):
        for special in product((False, True), repeat=len(bounds) - 1):
            found = Allocation(bounds, special)
            if found.devices <= gpus and sum(special) != 1:
                yield found


def on_devices(problem: Problem, bounds: tuple[int, ...], devices: tuple[int, ...]) -> Plan:
    """Stage i on device devices[i]."""
    graph = problem.profile.graph
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(op.name for op in graph.operators[first:end]),
                devices=(device,),
                micro_batch=problem.mini_batch,
            )
            for (first, end), device in zip(pairwise(bounds), devices, strict=True)
        ),
        placement="listed" if len(set(devices)) < len(devices) else "apart",
    )


def devices_of(special: tuple[bool, ...]) -> tuple[int, ...]:
    """The special stages on device 0, the others on devices of their own."""
    first = int(any(special))
    normal = iter(range(first, len(special) + 1))
    return tuple(0 if inside else next(normal) for inside in special)


@dataclass(frozen=True)
class Solved:
    plan: Plan
    schedule: PeriodicSchedule

    @property
    def period(self) -> int:
        return self.schedule.period_ns


def solved(problem: Problem, plan: Plan) -> Solved | None:
    """The proven shortest schedule."""
    try:
        described = plan_pattern(CostModel(problem), plan)
    except InfeasibleProblem:
        return None
    period, proven, _, instants = search(described, NODES)
    if period < 0:
        assert proven > described.row_ns
        return None
    assert proven == period
    return Solved(plan, periodic_schedule(described, instants, period))


def class_optimum(problem: Problem) -> int | None:
    """The shortest period with at most one special GPU."""
    length = len(problem.profile.graph.operators)
    plans = (
        on_devices(problem, a.bounds, devices_of(a.special)) for a in allocations(length, problem.cluster.size)
    )
    return min((s.period for plan in plans if (s := solved(problem, plan)) is not None), default=None)


def assignments(stages: int, gpus: int) -> Iterator[tuple[int, ...]]:
    """Every way to put stages on at most `gpus` devices, devices numbered as they appear."""

    def extend(chosen: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(chosen) == stages:
            yield chosen
            return
        for device in range(min(gpus, len(set(chosen)) + 1)):
            yield from extend((*chosen, device))

    return extend(())


def any_optimum(problem: Problem) -> int | None:
    """The shortest period over all assignments of stages to devices."""
    length = len(problem.profile.graph.operators)
    plans = (
        on_devices(problem, bounds, devices)
        for bounds in all_bounds(length, length)
        for devices in assignments(len(bounds) - 1, problem.cluster.size)
    )
    return min((s.period for plan in plans if (s := solved(problem, plan)) is not None), default=None)


def oplus(x: int, y: int, period: int) -> int:
    closed = period * math.ceil(x / period)
    return x + y if x + y <= closed else closed + y


def exactly(axis: str, value: int) -> int:
    """The value itself, whichever its axis."""
    return value


def printed_dp(
    chain: Figures,
    target: int,
    gpus: int,
    memory: int,
    longest: float = math.inf,
    rounded: Callable[[str, int], int] = exactly,
) -> float:
    """MadPipe-DP(target) of section 4.2.2 with C(k-1) in V' (A1) and any number of special stages (A4).

    longest: delays above it are left out. rounded: the value of the grid for one of `load`, `held` or `delay`.
    """

    @cache
    def shortest(last: int, p: int, load: int, held: int, delay: int) -> float:
        if last == 0:
            return load
        best = math.inf
        for k in range(last, 0, -1):
            work, cut = chain.load(k, last), chain.cut[k - 1] if k > 1 else 0
            group = max(1, math.ceil((delay + work) / target))
            behind = rounded("delay", oplus(oplus(delay, work, target), cut, target))
            if behind > longest:
                continue
            if p and chain.memory(k, last, group) <= memory:
                best = min(best, max(work, cut, shortest(k - 1, p - 1, load, held, behind)))
            then = held + chain.memory(k, last, group - 1)
            if then <= memory:
                after = shortest(k - 1, p, rounded("load", load + work), rounded("held", then), behind)
                best = min(best, max(load + work, cut, after))
        return best

    return shortest(chain.length, gpus - 1, 0, 0, 0)


def estimate_meets(
    chain: Figures, found: Allocation, period: int, memory: int, *, tight: bool, in_place: bool
) -> bool:
    """Section 5 of the notes for one allocation."""
    bounds, special = found
    delay = load = 0
    items = []
    for stage in reversed(range(len(special))):
        first, end = bounds[stage], bounds[stage + 1]
        beside = stage + 1 < len(special) and special[stage] and special[stage + 1]
        if stage + 1 < len(special) and not (beside and in_place):
            if chain.cut[end] > period:
                return False
            delay = oplus(delay, chain.cut[end], period)
        work = chain.load(first + 1, end)
        if work > period:
            return False
        delay = oplus(delay, work, period)
        group = max(1, math.ceil(delay / period))
        fixed = chain.memory(first + 1, end, 0) - (2 * chain.held[end] if beside and in_place else 0)
        saved = sum(chain.saved[first:end])
        if special[stage]:
            load += work
            items.append((group, fixed, saved))
        elif fixed + group * saved > memory:
            return False
    held = sum(fixed + (group - 1) * saved for group, fixed, saved in items)
    groups = {group for group, _, _ in items} if tight else set()
    peak = max((sum(s for g, _, s in items if g == group) for group in groups), default=0)
    return load <= period and held + peak <= memory
