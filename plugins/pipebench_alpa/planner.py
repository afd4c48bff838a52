"""The planner `alpa-inter`: the best cut at each profiled micro-batch, then the micro-batch."""

import numpy as np

from pipebench.algorithms.interval_dp import Cut, best_cut
from pipebench.algorithms.memory_limit import memory_limits
from pipebench.algorithms.score import mini_batch_ns
from pipebench.costs.formula import Formula
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_alpa.layers import layers_of
from pipebench_alpa.plugin import AlpaOptions
from pipebench_alpa.stage_costs import Shape, interval_costs, shapes, ways
from pipebench_alpa.submeshes import hosts_of, submesh_sizes


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
        best: tuple[int, Plan, Cut, int] | None = None
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
) -> tuple[Plan, Cut] | None:
    offered = shapes(problem, sizes, each, size)
    if not offered:
        return None
    forward, backward = CostModel(problem).times.at(size)
    work = (forward + backward).astype(np.float64)
    layers = layers_of(problem.profile.graph, work, options.layers, options.imbalance)
    seconds, deepest = interval_costs(problem, layers, offered, size, limit_bytes)
    devices = np.array([shape.devices for shape in offered], np.int64)
    cut, counters = best_cut(seconds, deepest, devices, problem.cluster.size, problem.mini_batch // size)
    for name, amount in counters.items():
        context.count(name, amount)
    context.count("layers", len(layers))
    return None if cut is None else (_plan(problem, cut, layers, offered, size), cut)


def _plan(problem: Problem, cut: Cut, layers: list[tuple[int, ...]], offered: list[Shape], size: int) -> Plan:
    operators = problem.profile.graph.operators
    count, micro_batches = len(cut.stages), problem.mini_batch // size
    devices = _placed([offered[option].devices for _, _, option in cut.stages])
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


def _placed(sizes: list[int]) -> list[tuple[int, ...]]:
    """Largest stages first, so that none is spread over more hosts than it needs."""
    devices: list[tuple[int, ...]] = [()] * len(sizes)
    used = 0
    for position in sorted(range(len(sizes)), key=lambda stage: -sizes[stage]):
        devices[position] = tuple(range(used, used + sizes[position]))
        used += sizes[position]
    return devices


def _micro_batches(problem: Problem) -> tuple[int, ...]:
    if problem.pins.micro_batch is not None:
        return (problem.pins.micro_batch,)
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
    if pins.recompute == "stage":
        raise UnsupportedProblem("alpa-inter does not recompute, recompute=stage is pinned")
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"alpa-inter plans for devices of one type, these are {', '.join(kinds)}")
