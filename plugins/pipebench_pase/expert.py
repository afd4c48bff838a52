"""The planner `expert`: strategies that people designed for such graphs, as a split for each operator."""

from collections.abc import Callable, Mapping
from math import isqrt

from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_pase.plugin import ExpertOptions
from pipebench_pase.space import divisors
from pipebench_pase.strategy_plan import refuse_unsupported, strategy_result
from pipebench_pase.tables import price_problem

Splits = dict[str, dict[str, int]]
FEW = 4
"""Devices that Mesh-TensorFlow's benchmark gives to the samples alone."""
ATTENTION = ("attention", "softmax")


def strategy_of(graph: OperatorGraph) -> str:
    """The strategy that was designed for graphs like this one."""
    kinds = {operator.kind for operator in graph.operators}
    if "lstm" in kinds:
        return "gnmt"
    if "conv2d" in kinds:
        return "owt"
    return "mesh-tensorflow" if kinds.intersection(ATTENTION) else "data-parallel"


def expert_splits(graph: OperatorGraph, strategy: str, samples: int, devices: int) -> Splits:
    """The strategy of that name. A size that is no multiple takes its largest divisor below the wanted parts."""
    rule = STRATEGIES[strategy]
    return {
        operator.name: _split_dims(operator, samples, rule(operator, samples, devices))
        for operator in graph.operators
    }


def data_parallel(operator: Operator, samples: int, devices: int) -> Mapping[str, int]:
    """Every operator by its samples."""
    del operator, samples
    return {"batch": devices}


def one_weird_trick(operator: Operator, samples: int, devices: int) -> Mapping[str, int]:
    """Fully connected layers by output features, the loss by classes (Krizhevsky 2014), the rest by samples."""
    match operator.kind:
        case "linear":
            return {"out_features": devices}
        case "cross_entropy":
            return {"classes": devices}
    return data_parallel(operator, samples, devices)


def gnmt(operator: Operator, samples: int, devices: int) -> Mapping[str, int]:
    """Each LSTM layer on devices of its own, which share its samples (Wu et al. 2016, section 3.3)."""
    if operator.kind == "lstm":
        layers = _largest_divisor(operator.dims["layers"], devices)
        return {"layers": layers, "batch": devices // layers}
    return data_parallel(operator, samples, devices)


def mesh_tensorflow(operator: Operator, samples: int, devices: int) -> Mapping[str, int]:
    """Samples in m parts, vocabulary, hidden layer and heads in n (Shazeer et al. 2018, section 5)."""
    del samples
    m = devices if devices <= FEW else _largest_divisor(devices, isqrt(devices))
    n = devices // m
    dims = operator.dims
    if "heads" in dims:
        return {"batch": m, "heads": n}
    match operator.kind:
        case "embedding":
            return {"batch": m, "entries": n}
        case "cross_entropy":
            return {"batch": m, "classes": n}
        case "linear":
            wide = "out_features" if dims["out_features"] >= dims["in_features"] else "in_features"
            return {"batch": m, wide: n}
    return {"batch": m}


STRATEGIES: dict[str, Callable[[Operator, int, int], Mapping[str, int]]] = {
    "data-parallel": data_parallel,
    "owt": one_weird_trick,
    "gnmt": gnmt,
    "mesh-tensorflow": mesh_tensorflow,
}


def _split_dims(operator: Operator, samples: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """The wanted parts as far as the sizes divide; only samples where the operator does not say its axes."""
    sizes = {"batch": samples} | (operator.dims if operator.axes else {})
    cut = {dim: _largest_divisor(sizes[dim], parts) for dim, parts in wanted.items() if dim in sizes}
    return {dim: parts for dim, parts in cut.items() if parts > 1}


def _largest_divisor(size: int, most: int) -> int:
    return max(divisor for divisor in divisors(size) if divisor <= most)


def plan(problem: Problem, context: Context) -> PlanResult:
    """The strategy with its cost in PaSE's terms; whether a search would consider it does not matter.

    Raises UnsupportedProblem for regimes, pins and clusters that one stage of split operators cannot express.
    """
    options = context.options
    assert isinstance(options, ExpertOptions)
    refuse_unsupported("expert", problem)
    prices = price_problem(problem, options)
    graph = problem.profile.graph
    name = strategy_of(graph) if options.strategy == "auto" else options.strategy
    splits = expert_splits(graph, name, prices.samples, problem.cluster.size)
    cost = prices.pricing.fixed_tables(splits).costs.of([0] * len(graph.operators))
    chosen = (f"strategy: {name}",) if options.strategy == "auto" else ()
    return strategy_result(problem, prices, splits, cost, options.describe, notices=chosen)
