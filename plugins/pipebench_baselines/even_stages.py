"""The planners `uniform`, `gpipe-hybrid` and `pipedream-2bw`: stages of equal numbers of layers."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from pipebench.algorithms.blocks.grouped import grouped_problem, ungrouped_plan
from pipebench.algorithms.chains.level_cuts import balanced_cuts, layer_groups
from pipebench.algorithms.chains.stage_row import Way, not_offered, plain, recompute_notices, way
from pipebench.algorithms.micro_batches import (
    divisors,
    micro_batch_candidates,
    micro_batch_notices,
    pinned_sizes,
)
from pipebench.costs.messages import messages
from pipebench.costs.model import CostModel
from pipebench.costs.placement import place
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import RecomputePin, of_layers
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_baselines.best_plan import best_plan, refuse_unsupported


def equal_cuts(items: int, parts: int) -> tuple[int, ...]:
    """parts + 1 bounds 0 … items; parts differ in size by at most one. Needs 1 <= parts <= items."""
    return tuple(part * items // parts for part in range(parts + 1))


def even_plan(
    problem: Problem,
    contents: Sequence[tuple[int, ...]],
    replicas: int,
    micro_batch: int,
    run: Way,
    *,
    one_f_one_b: bool = True,
) -> Plan:
    """Stages of these operators (positions), in sequence on consecutive devices.

    The frameworks that cut so run stages in sequence, on a multi-branch graph too: order edges tie consecutive
    stages in sync; in async they form a chain that passes tensors on. one_f_one_b (sync): the k-th stage from the
    end keeps k micro-batches in flight; else the scheduler decides.
    """
    graph = problem.profile.graph
    count = len(contents)
    micro_batches = problem.mini_batch // micro_batch
    sync = problem.regime.mode == "sync"
    placed = place([replicas * run.tensor_parallel] * count, problem.cluster.size)
    stages = tuple(
        Stage(
            operators=tuple(graph.operators[operator].name for operator in operators),
            devices=placed[position],
            data_parallel=replicas,
            tensor_parallel=run.tensor_parallel,
            micro_batch=micro_batch,
            in_flight=min(count - position, micro_batches) * micro_batch if sync and one_f_one_b else 0,
            choice=run.choice_of(operators),
            recompute=run.recompute,
        )
        for position, operators in enumerate(contents)
    )
    if sync:
        return Plan(stages=stages, order_edges=tuple(pairwise(range(count))))
    edges = {(m.source, m.target) for m in messages(graph, Plan(stages=stages))}
    chained = edges == set(pairwise(range(count)))
    return Plan(stages=stages, routing="direct" if chained else "relay")


def uniform(problem: Problem, context: Context) -> PlanResult:
    """Stages of equal numbers of layers, at the micro-batch of the shortest mini-batch.

    Tensor parallelism where it is pinned. One stage a device (a pinned number of replicas: a stage for as many
    devices), or the pinned number of stages; fewer when there are fewer layers. Where stages are pinned and
    replicas are not, as many as there are devices for, as in a framework that is given the other degrees. The
    frameworks that cut so run stages in sequence, on a multi-branch graph too: order edges tie consecutive stages
    in sync; in async they form a chain that passes tensors on. Raises InfeasibleProblem when the pins ask for too
    many devices or layers, or nothing fits.
    """
    refuse_unsupported("uniform", problem, tensor_parallel=True)
    pins, devices = problem.pins, problem.cluster.size
    tensor = pins.tensor_parallel or 1
    filling = devices // (pins.pipeline * tensor) if pins.pipeline else 1
    replicas = pins.data_parallel or max(1, min(filling, problem.mini_batch))
    if (pins.pipeline or 1) * replicas * tensor > devices:
        wanted = f"{pins.pipeline or 1} stages of {replicas} replicas" + (f" of {tensor} devices" * (tensor > 1))
        raise InfeasibleProblem(f"{wanted} are pinned, there are {devices} devices")
    if not problem.regime.shares_experts_over(replicas, tensor):
        ranks, there = problem.regime.expert_ranks, replicas * tensor * problem.regime.context_ranks
        raise InfeasibleProblem(
            f"uniform has stages of {there} ranks, {ranks} ranks share out experts: pin --dp and --tp that make a "
            f"multiple of {ranks}"
        )
    _require_whole_groups("uniform", problem, replicas)
    groups = layer_groups(problem.profile.graph)
    if pins.pipeline is not None and pins.pipeline > len(groups):
        raise InfeasibleProblem(f"{pins.pipeline} stages are pinned, there are {len(groups)} layers")
    run = _uniform_way(problem, tensor)
    stages = pins.pipeline or min(devices // (replicas * tensor), len(groups))
    cuts = equal_cuts(len(groups), stages)
    contents = [tuple(op for group in groups[a:b] for op in group) for a, b in pairwise(cuts)]
    plans = [
        even_plan(problem, contents, replicas, micro_batch, run)
        for micro_batch in micro_batch_candidates(problem, (replicas,))
        if micro_batch >= replicas
    ]
    if not plans:
        raise InfeasibleProblem(f"no micro-batch gives each of {replicas} replicas a sample")
    notices = (*micro_batch_notices(problem, (replicas,)), *recompute_notices(problem, run))
    return best_plan("uniform", problem, plans, context, notices)


def _uniform_way(problem: Problem, tensor: int) -> Way:
    """How operators run at the pinned degree; where only recomputation is pinned, stages recompute as a whole."""
    recompute = problem.pins.recompute
    if tensor == 1:
        return plain(problem, recompute)
    found = way(problem, tensor, recompute)
    if found is None:
        raise not_offered("uniform", problem, tensor)
    return found


FEWEST_STAGES = 2
"""GPipe-Hybrid and PipeDream-2BW do not run a single stage (RaNNC, section IV-B)."""


def gpipe_hybrid(problem: Problem, context: Context) -> PlanResult:
    """The best number of uniform stages under GPipe's schedule (sync)."""
    return _hybrid_plan("gpipe-hybrid", problem, context, "sync")


def pipedream_2bw(problem: Problem, context: Context) -> PlanResult:
    """The best number of uniform stages under 1F1B*, with two weight versions and one gradient (async)."""
    return _hybrid_plan("pipedream-2bw", problem, context, "async")


def _hybrid_plan(name: str, problem: Problem, context: Context, regime: str) -> PlanResult:
    """Stages of equal numbers of layers; stages times replicas are all devices; every micro-batch is tried.

    The plan of the shortest mini-batch. Raises UnsupportedProblem, InfeasibleProblem when nothing fits.
    """
    refuse_unsupported(name, problem)
    if problem.regime.mode != regime:
        raise UnsupportedProblem(f"{name} plans for the {regime} regime only", f"use regime {regime}")
    layers = layer_groups(problem.profile.graph)
    shapes = _even_shapes(name, problem, len(layers), context.options.cuts == "layers")
    runs = [plain(problem, recompute) for recompute in _recomputes(problem, context.options.checkpointing)]
    sizes = {
        shape: [size for size in micro_batch_candidates(problem, (shape[1],)) if size >= shape[1]]
        for shape in shapes
        if pinned_sizes(problem, (shape[1],)) != ()
    }
    samples = {-(-size // replicas) for (_, replicas), found in sizes.items() for size in found}
    if not samples:
        each = problem.pins.micro_batch_size
        raise InfeasibleProblem(
            f"{name}: no micro-batch gives each replica {f'{each} samples' if each else 'a sample'}"
        )
    model = CostModel(problem)
    by_layer = None if of_layers(problem.pins.recompute) else grouped_problem(model, layers, samples)
    where = by_layer or problem
    if by_layer is not None:
        runs = [plain(by_layer, run.recompute) for run in runs]
    items: Sequence[Sequence[int]] = layers if by_layer is None else [(layer,) for layer in range(len(layers))]
    plans = []
    for (stages, replicas), found in sizes.items():
        for size in found:
            cuts = equal_cuts(len(layers), stages)
            if context.options.cuts == "time":
                cuts = balanced_cuts(_times(model, layers, -(-size // replicas)), stages)
            contents = [tuple(op for item in items[a:b] for op in item) for a, b in pairwise(cuts)]
            plans += [even_plan(where, contents, replicas, size, run, one_f_one_b=False) for run in runs]
    result = best_plan(name, where, plans, context, gpipe=regime == "sync")
    if by_layer is None:
        return result
    return replace(result, plan=_for_operators(problem, result.plan, layers))


def _even_shapes(name: str, problem: Problem, layers: int, even: bool) -> list[tuple[int, int]]:
    """(stages, replicas) that take all devices or what is pinned. even: where any number of stages divides the
    layers, only those that do.
    """
    pins, devices = problem.pins, problem.cluster.size
    if pins.pipeline is not None or pins.data_parallel is not None:
        stages = pins.pipeline or min(layers, devices // (pins.data_parallel or 1))
        replicas = pins.data_parallel or devices // stages
        if stages > layers or stages * replicas > devices or replicas < 1 or stages < FEWEST_STAGES:
            raise InfeasibleProblem(
                f"{name}: {stages} stages of {replicas} replicas are pinned, there are {layers} layers and "
                f"{devices} devices; it has at least {FEWEST_STAGES} stages"
            )
        _require_whole_groups(name, problem, replicas)
        return [(stages, replicas)]
    counts = [count for count in divisors(devices, devices) if FEWEST_STAGES <= count <= layers]
    if not counts:
        raise InfeasibleProblem(
            f"{name} has at least {FEWEST_STAGES} stages, there are {layers} layers and {devices} devices"
        )
    whole = [count for count in counts if problem.regime.shards_evenly(devices // count)]
    if not whole:
        _require_whole_groups(name, problem, devices // counts[0])
    counts = whole
    dividing = [count for count in counts if layers % count == 0 or not even]
    return [(count, devices // count) for count in dividing or counts]


def _require_whole_groups(name: str, problem: Problem, replicas: int) -> None:
    """Raise InfeasibleProblem where so many replicas make no whole groups that share out a copy of the weights."""
    if not problem.regime.shards_evenly(replicas):
        ranks = problem.regime.shards(replicas * problem.regime.context_ranks)
        raise InfeasibleProblem(
            f"{name} has stages of {replicas} replicas, {ranks} ranks share out a copy of the weights",
            "pin a --dp that makes whole groups of them",
        )


def _times(model: CostModel, layers: Sequence[Sequence[int]], samples: int) -> list[int]:
    terms = model.terms(samples)
    both = terms.forward_ns + terms.backward_ns
    return [int(both[list(layer)].sum()) for layer in layers]


def _recomputes(problem: Problem, checkpointing: str) -> tuple[RecomputePin, ...]:
    if problem.pins.recompute is not None:
        return (problem.pins.recompute,)
    return ("stage",) if checkpointing == "always" else ("none", "stage")


def _for_operators(problem: Problem, plan: Plan, layers: Sequence[Sequence[int]]) -> Plan:
    operators = problem.profile.graph.operators
    return ungrouped_plan(plan, [[operators[op].name for op in layer] for layer in layers])
