"""When two branches are the same but for their names: what holds for one holds for the other."""

from collections.abc import Hashable, Sequence

from pipebench.algorithms.sp_tree import Leaf, Node, Series, leaves
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import OperatorCosts


class Signatures:
    """Signatures of subtrees of one graph's series-parallel tree.

    Equal signatures: the operators, from left to right, cost the same, hold parameters and tensors of the
    same bytes in the same places, and share parameters and tensors with the same operators outside. So a
    stage in one branch costs what its image in the other costs, whatever else the stage holds outside of both.
    Branches that list their own branches in another order are not recognised.
    """

    def __init__(self, graph: OperatorGraph, costs: Sequence[OperatorCosts]) -> None:
        self._graph = graph
        self._costs = costs
        self._users: dict[str, set[int]] = {}
        for position, operator in enumerate(graph.operators):
            for name in operator.parameters:
                self._users.setdefault(name, set()).add(position)

    def of(self, node: Node) -> Hashable:
        """The signature of a subtree."""
        order = tuple(leaves(node))
        place = {operator: at for at, operator in enumerate(order)}
        local: dict[str, int] = {}
        return _shape(node), tuple(
            (self._cost(operator), self._parameters(operator, place, local), self._tensors(operator, place))
            for operator in order
        )

    def _cost(self, operator: int) -> Hashable:
        costs = self._costs[operator]
        return costs.forward_s, costs.backward_s, costs.saved_bytes_per_sample, costs.workspace_bytes

    def _parameters(self, operator: int, place: dict[int, int], local: dict[str, int]) -> Hashable:
        """Bytes of each parameter, with its name where an operator outside uses it too, else with a number."""
        sizes = self._graph.parameter_bytes
        return tuple(
            (local.setdefault(name, len(local)) if self._users[name] <= place.keys() else name, sizes[name])
            for name in self._graph.operators[operator].parameters
        )

    def _tensors(self, operator: int, place: dict[int, int]) -> Hashable:
        graph = self._graph
        read = []
        for name in graph.operators[operator].inputs:
            tensor = graph.tensor_index[name]
            producer = graph.producers[tensor]
            if producer >= 0:
                inside = producer in place
                read.append((place[producer], graph.outputs[producer].index(tensor)) if inside else (-1, tensor))
        made = []
        for tensor in graph.outputs[operator]:
            sent = graph.tensors[tensor]
            outside = tuple(reader for reader in graph.consumers[tensor] if reader not in place)
            sizes = (sent.forward_bytes_per_sample, sent.gradient_bytes_per_sample, sent.fixed_bytes)
            made.append((sizes, outside))
        return tuple(sorted(read)), tuple(made)


def _shape(node: Node) -> Hashable:
    if isinstance(node, Leaf):
        return ""
    return "S" if isinstance(node, Series) else "P", tuple(map(_shape, node.children))
