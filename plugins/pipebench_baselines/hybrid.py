"""The planners `gpipe-hybrid` and `pipedream-2bw`: uniform stages, each with as many replicas."""

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from pipebench.algorithms.balance import balanced_cuts
from pipebench.algorithms.degrees import plain
from pipebench.algorithms.grouped import grouped, ungrouped
from pipebench.algorithms.layer_groups import layer_groups
from pipebench.algorithms.micro_batches import divisors, micro_batch_candidates
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, Recompute
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_baselines.best import best_plan
from pipebench_baselines.equal_cuts import equal_cuts
from pipebench_baselines.even_stages import even_plan
from pipebench_baselines.pins import refuse_unsupported

FEWEST_STAGES = 2
"""GPipe-Hybrid and PipeDream-2BW do not run a single stage (RaNNC, section IV-B)."""


def gpipe_hybrid(problem: Problem, context: Context) -> PlanResult:
    """The best number of uniform stages under GPipe's schedule (sync)."""
    return _plan("gpipe-hybrid", problem, context, "sync")


def pipedream_2bw(problem: Problem, context: Context) -> PlanResult:
    """The best number of uniform stages under 1F1B*, with two weight versions and one gradient (async)."""
    return _plan("pipedream-2bw", problem, context, "async")


def _plan(name: str, problem: Problem, context: Context, regime: str) -> PlanResult:
    """Stages of equal numbers of layers; stages times replicas are all devices; every micro-batch is tried.

    The plan of the shortest mini-batch. Raises UnsupportedProblem, InfeasibleProblem when nothing fits.
    """
    refuse_unsupported(name, problem)
    if problem.regime.mode != regime:
        raise UnsupportedProblem(f"{name} plans for the {regime} regime only", f"use regime {regime}")
    layers = layer_groups(problem.profile.graph)
    shapes = _shapes(name, problem, len(layers), context.options.cuts == "layers")
    recomputes = _recomputes(problem, context.options.checkpointing)
    sizes = {
        shape: [size for size in micro_batch_candidates(problem, (shape[1],)) if size >= shape[1]]
        for shape in shapes
    }
    samples = {-(-size // replicas) for (_, replicas), found in sizes.items() for size in found}
    if not samples:
        raise InfeasibleProblem(f"{name}: no micro-batch gives each replica a sample")
    model = CostModel(problem)
    by_layer = grouped(model, layers, samples)
    where = by_layer or problem
    items: Sequence[Sequence[int]] = layers if by_layer is None else [(layer,) for layer in range(len(layers))]
    plans = []
    for (stages, replicas), found in sizes.items():
        for size in found:
            cuts = equal_cuts(len(layers), stages)
            if context.options.cuts == "time":
                cuts = balanced_cuts(_times(model, layers, -(-size // replicas)), stages)
            contents = [tuple(op for item in items[a:b] for op in item) for a, b in pairwise(cuts)]
            plans += [
                even_plan(where, contents, replicas, size, plain(where, recompute), one_f_one_b=False)
                for recompute in recomputes
            ]
    result = best_plan(name, where, plans, context, gpipe=regime == "sync")
    if by_layer is None:
        return result
    return replace(result, plan=_for_operators(problem, result.plan, layers))


def _shapes(name: str, problem: Problem, layers: int, even: bool) -> list[tuple[int, int]]:
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
        return [(stages, replicas)]
    counts = [count for count in divisors(devices, devices) if FEWEST_STAGES <= count <= layers]
    if not counts:
        raise InfeasibleProblem(
            f"{name} has at least {FEWEST_STAGES} stages, there are {layers} layers and {devices} devices"
        )
    dividing = [count for count in counts if layers % count == 0 or not even]
    return [(count, devices // count) for count in dividing or counts]


def _times(model: CostModel, layers: Sequence[Sequence[int]], samples: int) -> list[int]:
    terms = model.terms(samples)
    both = terms.forward_ns + terms.backward_ns
    return [int(both[list(layer)].sum()) for layer in layers]


def _recomputes(problem: Problem, checkpointing: str) -> tuple[Recompute, ...]:
    if problem.pins.recompute is not None:
        return (problem.pins.recompute,)
    return ("stage",) if checkpointing == "always" else ("none", "stage")


def _for_operators(problem: Problem, plan: Plan, layers: Sequence[Sequence[int]]) -> Plan:
    operators = problem.profile.graph.operators
    return ungrouped(plan, [[operators[op].name for op in layer] for layer in layers])
