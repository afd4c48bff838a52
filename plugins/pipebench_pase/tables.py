"""The costs of all configurations of a problem, as PaSE counts them: a table a vertex, a table a pair."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pipebench.domain.graph import Operator, OperatorGraph
from pipebench_pase.elimination import Costs
from pipebench_pase.machine import Machine
from pipebench_pase.paper_layer_costs import RULES, Layer, layer_costs
from pipebench_pase.paper_transfer_costs import transfer_costs
from pipebench_pase.space import FloatArray, Space, configurations, one_configuration
from pipebench_pase.whole_dims import contiguous, whole_dims

Split = Mapping[str, int]


@dataclass(frozen=True)
class Tables:
    """spaces: the configurations of each operator, in the graph's order. costs: of them and of their pairs."""

    graph: OperatorGraph
    spaces: Sequence[Space]
    costs: Costs

    def splits(self, strategy: Sequence[int]) -> dict[str, dict[str, int]]:
        """What each operator's configuration cuts."""
        each = zip(self.graph.operators, self.spaces, strategy, strict=True)
        return {operator.name: space.split(number) for operator, space, number in each}


@dataclass(frozen=True)
class Pricing:
    """How PaSE counts a graph at `samples`; parallel `last`: of several tensors between two operators the last
    alone counts, as in the prototype, whose graph keeps one edge a pair. seconds: forward and backward of each
    operator at `samples`, for those that no rule covers.
    """

    graph: OperatorGraph
    samples: int
    machine: Machine
    parallel: str = "last"
    seconds: Sequence[float] = ()

    def sizes(self, operator: Operator) -> dict[str, int]:
        """The iteration space, samples first; samples alone where the operator names no dims."""
        return {"batch": self.samples} | (operator.dims if operator.axes else {})

    def searched(self, devices: int, cutoff: int) -> Tables:
        """Every configuration on at most so many devices."""

        def space(operator: Operator) -> Space:
            sizes = self.sizes(operator)
            whole = whole_dims(self.graph, operator) & sizes.keys()
            return contiguous(operator, configurations(sizes, whole, devices, cutoff))

        return self._tables(space, self._signature)

    def given(self, splits: Mapping[str, Split]) -> Tables:
        """One configuration for each operator: tables of one entry."""
        return self._tables(
            lambda operator: one_configuration(self.sizes(operator), splits[operator.name]),
            lambda operator: (self._signature(operator), tuple(sorted(splits[operator.name].items()))),
        )

    def _tables(self, make: Callable[[Operator], Space], sign: Callable[[Operator], object]) -> Tables:
        """Operators of one signature share their tables, and so do pairs of them."""
        spaces: dict[object, Space] = {}
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
                vertices[signed] = layer_costs(Layer(self.graph, operator, spaces[signed], seconds), self.machine)
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
        return Tables(self.graph, [spaces[s] for s in signs], Costs([vertices[s] for s in signs], pairs))

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
