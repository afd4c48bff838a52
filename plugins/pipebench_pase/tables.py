"""From a problem and options to the tables that a search works on: a table a vertex, a table a pair."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.problem import Problem
from pipebench_pase.elimination import Costs
from pipebench_pase.paper_costs import RULES, CostMachine, LayerWork, layer_costs, transfer_costs
from pipebench_pase.plugin import CostOptions
from pipebench_pase.space import (
    ConfigurationSpace,
    FloatArray,
    configurations,
    contiguous,
    one_configuration,
    whole_dims,
)

Split = Mapping[str, int]


@dataclass(frozen=True)
class StrategyTables:
    """The tables of a search.

    spaces: the configurations of each operator, in the graph's order.
    costs: of the configurations and of their pairs.
    """

    graph: OperatorGraph
    spaces: Sequence[ConfigurationSpace]
    costs: Costs

    def splits(self, strategy: Sequence[int]) -> dict[str, dict[str, int]]:
        """The dims that each operator's configuration cuts."""
        each = zip(self.graph.operators, self.spaces, strategy, strict=True)
        return {operator.name: space.split(number) for operator, space, number in each}


@dataclass(frozen=True)
class Pricing:
    """How PaSE prices a graph at `samples`.

    parallel: `last` prices only the last of several tensors between two operators, as in the prototype, whose
        graph keeps one edge a pair.
    seconds: forward and backward of each operator at `samples`, for those that no rule covers.
    """

    graph: OperatorGraph
    samples: int
    machine: CostMachine
    parallel: str = "last"
    seconds: Sequence[float] = ()

    def sizes(self, operator: Operator) -> dict[str, int]:
        """The iteration space, samples first; samples alone where the operator names no dims."""
        return {"batch": self.samples} | (operator.dims if operator.axes else {})

    def search_tables(self, devices: int, cutoff: int) -> StrategyTables:
        """The tables of every configuration on at most so many devices."""

        def space(operator: Operator) -> ConfigurationSpace:
            sizes = self.sizes(operator)
            whole = whole_dims(self.graph, operator) & sizes.keys()
            return contiguous(operator, configurations(sizes, whole, devices, cutoff))

        return self._tables(space, self._signature)

    def fixed_tables(self, splits: Mapping[str, Split]) -> StrategyTables:
        """The tables of one configuration for each operator, with one entry each."""
        return self._tables(
            lambda operator: one_configuration(self.sizes(operator), splits[operator.name]),
            lambda operator: (self._signature(operator), tuple(sorted(splits[operator.name].items()))),
        )

    def _tables(
        self, make: Callable[[Operator], ConfigurationSpace], sign: Callable[[Operator], object]
    ) -> StrategyTables:
        """Operators of one signature share their tables, and so do pairs of them."""
        spaces: dict[object, ConfigurationSpace] = {}
        vertices: dict[object, FloatArray] = {}
        both: dict[object, FloatArray] = {}
        signs = []
        for position, operator in enumerate(self.graph.operators):
            signed: object = sign(operator)
            if operator.kind not in RULES:
                signed = (signed, position)
            signs.append(signed)
            if signed not in spaces:
                spaces[signed] = make(operator)
                seconds = self.seconds[position] if self.seconds else 0.0
                vertices[signed] = layer_costs(
                    LayerWork(self.graph, operator, spaces[signed], seconds), self.machine
                )
        pairs: dict[tuple[int, int], FloatArray] = {}
        for source, target, names in edges(self.graph, self.parallel):
            maker, reader = self.graph.operators[source], self.graph.operators[target]
            for name in names:
                key = signs[source], signs[target], maker.axes.get(name), reader.axes.get(name)
                if key not in both:
                    made, read = spaces[signs[source]], spaces[signs[target]]
                    both[key] = transfer_costs(name, maker, made, reader, read, self.machine)
                    both[key, "turned"] = both[key].T
                found = both[key] if source < target else both[key, "turned"]
                place = min(source, target), max(source, target)
                pairs[place] = pairs[place] + found if place in pairs else found
        return StrategyTables(self.graph, [spaces[s] for s in signs], Costs([vertices[s] for s in signs], pairs))

    def _signature(self, operator: Operator) -> object:
        """Equal for operators of equal cost tables."""
        graph = self.graph
        inputs = tuple((operator.axes.get(name), self._source(name)) for name in operator.inputs)
        parameters = tuple(operator.axes.get(name) for name in operator.parameters)
        made = tuple(operator.axes.get(graph.tensors[t].name) for t in graph.outputs[graph.index[operator.name]])
        attributes = tuple(sorted(operator.attributes.items()))
        return operator.kind, tuple(operator.dims.items()), attributes, inputs, parameters, made

    def _source(self, name: str) -> object:
        """The shape that a tensor has where it is made."""
        producer = self.graph.producers[self.graph.tensor_index[name]]
        if producer < 0:
            return None
        source = self.graph.operators[producer]
        return tuple(source.dims.get(dim) for dim in source.axes.get(name, ()))


def edges(graph: OperatorGraph, parallel: str) -> list[tuple[int, int, tuple[str, ...]]]:
    """Producer, consumer and the tensors between them that count, in the order of the graph."""
    found: dict[tuple[int, int], list[str]] = {}
    for target, operator in enumerate(graph.operators):
        for name in operator.inputs:
            source = graph.producers[graph.tensor_index[name]]
            if source >= 0:
                found.setdefault((source, target), []).append(name)
    return [(*pair, tuple(names[-1:] if parallel == "last" else names)) for pair, names in found.items()]


GIGA, TERA = 1e9, 1e12
COARSE, FINE = 4, 1
"""Cutoffs of the prototype: for convolutional networks, and for the others."""


@dataclass(frozen=True, slots=True)
class PricedProblem:
    """How a problem is priced. samples: those of one run of the strategy. unit_s: seconds of one unit of cost."""

    pricing: Pricing
    samples: int
    cutoff: int
    unit_s: float
    unit: str


def price_problem(problem: Problem, options: CostOptions) -> PricedProblem:
    """The pricing that these options ask for.

    Raises UnsupportedProblem where the cluster's rates are asked for and it does not tell its peak.
    """
    samples = problem.pins.micro_batch or problem.mini_batch
    graph = problem.profile.graph
    cutoff = options.cutoff or (COARSE if any(op.kind == "conv2d" for op in graph.operators) else FINE)
    flops = options.tflops * TERA or _peak(problem)
    bandwidth = options.bandwidth * GIGA or problem.cluster.flat(problem.cluster.size).bandwidth_bytes_s
    machine = CostMachine(flops, flops / (bandwidth / options.word_bytes))
    forward, backward = CostModel(problem).times.at(samples)
    seconds = tuple((forward + backward) / NS_PER_S)
    pricing = Pricing(graph, samples, machine, options.parallel, seconds)
    return PricedProblem(pricing, samples, cutoff, 1.0 / flops, "multiply-adds")


def _peak(problem: Problem) -> float:
    """Multiply-adds a second of the cluster's devices at the problem's precision."""
    kind = problem.cluster.type_of(0)
    peak = kind.peak_flops.get(problem.regime.precision, 0.0)
    if not peak:
        raise UnsupportedProblem(
            f"tflops=0 asks for the peak of {kind.name!r} in {problem.regime.precision}, which is not known",
            "give tflops",
        )
    return peak / 2


def assumptions(problem: Problem) -> tuple[str, ...]:
    """What is assumed of operators that say too little: those without dims, those of a kind without a rule."""
    plain = [op.name for op in problem.profile.graph.operators if not (op.dims and op.axes)]
    strange = [op.name for op in problem.profile.graph.operators if op.dims and op.axes and op.kind not in RULES]
    notices = []
    if plain:
        notices.append(
            f"{_names(plain)} without dims: cut by samples only, every tensor taken to have samples as its first "
            "axis, arithmetic from the profile's times"
        )
    if strange:
        notices.append(f"{_names(strange)} of a kind that PaSE has no formula for: arithmetic in equal shares")
    return tuple(notices)


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"operator{'s' if len(names) > 1 else ''} {shown}"
