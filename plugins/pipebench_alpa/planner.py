"""The planner `alpa-inter`: layers, their best cut at each profiled micro-batch, then the micro-batch."""

from itertools import pairwise

import numpy as np

from pipebench.algorithms.graph_orders import linearise
from pipebench.algorithms.micro_batches import micro_batch_candidates
from pipebench.algorithms.planning import memory_limits, mini_batch_ns, refuse_recomputation
from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S, FloatArray
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_alpa.interval_dp import IntervalCut, best_cut
from pipebench_alpa.plugin import AlpaOptions
from pipebench_alpa.stage_costs import LogicalShape, hosts_of, interval_costs, logical_shapes, submesh_sizes, ways


def layers_of(graph: OperatorGraph, work: FloatArray, most: int, imbalance: float) -> list[tuple[int, ...]]:
    """Operators (positions) of each layer, in topological order; one each where there are few enough.

    Least largest number of bytes that cross a cut, ties by their sum, with work at most (1 + imbalance) of the
    mean (more where one operator has more). Source: Alpa section 5.2 (operator clustering), the released DP.
    """
    chain = linearise(graph, "operators")
    order = [operator for layer in chain.operators for operator in layer]
    count = len(order)
    if count <= most:
        return [(operator,) for operator in order]
    crossing = np.array(
        [0.0, *(sum(graph.tensors[t].forward_bytes_per_sample for t in cut) for cut in chain.crossing)]
    )
    done = np.concatenate([[0.0], np.cumsum(work[order])])
    limit = max((1 + imbalance) * done[-1] / most, float(work.max())) * (1 + 1e-9)
    largest, total = np.full(count + 1, np.inf), np.full(count + 1, np.inf)
    largest[0] = total[0] = 0.0
    back = []
    for _ in range(most):
        new_largest, new_total = np.full(count + 1, np.inf), np.full(count + 1, np.inf)
        link = np.zeros(count + 1, np.int64)
        for end in range(1, count + 1):
            start = int(np.searchsorted(done, done[end] - limit))
            if start >= end:
                continue
            tops = np.maximum(largest[start:end], crossing[start:end])
            sums = total[start:end] + crossing[start:end]
            choice = int(np.lexsort((sums, tops))[0])
            new_largest[end], new_total[end], link[end] = tops[choice], sums[choice], start + choice
        back.append(link)
        largest, total = new_largest, new_total
    if not np.isfinite(largest[count]):
        return _even(order, done, most)
    bounds, end = [count], count
    for link in reversed(back):
        end = int(link[end])
        bounds.append(end)
    bounds.reverse()
    return [tuple(order[a:b]) for a, b in pairwise(bounds)]


def _even(order: list[int], done: FloatArray, most: int) -> list[tuple[int, ...]]:
    """As even as operators allow: cut where another share of the work is done."""
    marks = np.searchsorted(done, done[-1] * np.arange(1, most) / most)
    bounds = sorted({0, len(order), *(int(mark) for mark in marks)})
    return [tuple(order[a:b]) for a, b in pairwise(bounds)]


def plan(problem: Problem, context: Context) -> PlanResult:
    """The cut of the least sum of stage times + (B - 1) times the largest, on all devices.

    Raises UnsupportedProblem for pins and clusters that it cannot express, InfeasibleProblem when nothing fits.
    """
    options = context.options
    assert isinstance(options, AlpaOptions)
    _refuse_unsupported(problem)
    hosts, each = hosts_of(problem.cluster)
    sizes = submesh_sizes(hosts, each, options.submeshes == "all")
    candidates = _micro_batches(problem)
    for limit_bytes in memory_limits(problem):
        best: tuple[int, Plan, IntervalCut, int] | None = None
        for size in candidates:
            context.check_deadline()
            found = _solve(problem, size, sizes, each, limit_bytes, options, context)
            if found is None:
                continue
            score = mini_batch_ns(problem, found[0], context) if len(candidates) > 1 else 0
            if score is not None and (best is None or score < best[0]):
                best = (score, *found, size)
        if best is not None:
            _, made, cut, size = best
            update_s = Formula(problem.regime, problem.mini_batch).update_ns(0) / NS_PER_S
            return PlanResult(
                plan=made,
                claimed_s=cut.objective_s + update_s,
                claimed_native=cut.objective_s,
                claimed_unit="s (sum of stage times + (B - 1) x the largest)",
                termination="optimal" if len(candidates) == 1 else "heuristic",
                bound_scope="cuts of these layers into submeshes in Alpa's model" if len(candidates) == 1 else "",
            )
    raise InfeasibleProblem(
        f"alpa-inter finds no cut on all {problem.cluster.size} devices of "
        f"{problem.cluster.memory_bytes} bytes at "
        f"micro-batch {', '.join(map(str, candidates))}",
        "use more memory or a smaller micro-batch",
    )


def _solve(
    problem: Problem,
    size: int,
    sizes: list[int],
    each: int,
    limit_bytes: int,
    options: AlpaOptions,
    context: Context,
) -> tuple[Plan, IntervalCut] | None:
    offered = logical_shapes(problem, sizes, each, size)
    if not offered:
        return None
    forward, backward = CostModel(problem).times.at(size)
    work = (forward + backward).astype(np.float64)
    layers = layers_of(problem.profile.graph, work, options.layers, options.imbalance)
    seconds, deepest = interval_costs(problem, layers, offered, size, limit_bytes, options.memory)
    devices = np.array([shape.devices for shape in offered], np.int64)
    cut, counters = best_cut(seconds, deepest, devices, problem.cluster.size, problem.mini_batch // size)
    for name, amount in counters.items():
        context.count(name, amount)
    context.count("layers", len(layers))
    return None if cut is None else (_plan(problem, cut, layers, offered, size), cut)


def _plan(
    problem: Problem, cut: IntervalCut, layers: list[tuple[int, ...]], offered: list[LogicalShape], size: int
) -> Plan:
    operators = problem.profile.graph.operators
    count, micro_batches = len(cut.stages), problem.mini_batch // size
    devices = _device_blocks([offered[option].devices for _, _, option in cut.stages])
    stages = []
    for position, (first, end, option) in enumerate(cut.stages):
        shape = offered[option]
        names = ways(problem, shape, size)
        held = [operator for layer in layers[first:end] for operator in layer]
        choice = tuple(names[operator] for operator in held)
        stages.append(
            Stage(
                operators=tuple(operators[operator].name for operator in held),
                devices=devices[position],
                data_parallel=shape.data_parallel,
                tensor_parallel=shape.tensor_parallel,
                micro_batch=size,
                in_flight=min(count - position, micro_batches) * size,
                choice=choice if any(choice) else (),
            )
        )
    return Plan(stages=tuple(stages), order_edges=tuple((i, i + 1) for i in range(count - 1)))


def _device_blocks(sizes: list[int]) -> list[tuple[int, ...]]:
    """The devices of each stage.

    The largest stages come first, so that none is spread over more hosts than it needs.
    """
    devices: list[tuple[int, ...]] = [()] * len(sizes)
    used = 0
    for position in sorted(range(len(sizes)), key=lambda stage: -sizes[stage]):
        devices[position] = tuple(range(used, used + sizes[position]))
        used += sizes[position]
    return devices


def _micro_batches(problem: Problem) -> tuple[int, ...]:
    pins = problem.pins
    if pins.micro_batch is not None or pins.micro_batch_size is not None:
        counts = [pins.data_parallel] if pins.data_parallel else list(range(1, problem.cluster.size + 1))
        return micro_batch_candidates(problem, counts)
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    return tuple(size for size in profiled if problem.mini_batch % size == 0) or (problem.mini_batch,)


def _refuse_unsupported(problem: Problem) -> None:
    pins = problem.pins
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("alpa-inter plans for synchronous updates; the problem is async")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"alpa-inter has no virtual stages, {pins.virtual_stages} are pinned")
    if pins.pipeline is not None:
        raise UnsupportedProblem(f"alpa-inter chooses the number of stages, {pins.pipeline} are pinned")
    refuse_recomputation(problem, "alpa-inter")
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"alpa-inter plans for devices of one type, these are {', '.join(kinds)}")
