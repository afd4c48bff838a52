"""What a group of atoms costs while blocks are made: times and memory by the suite's cost model."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipebench.costs.formula import Holdings
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel
from pipebench_rannc.atoms import Atoms


@dataclass(frozen=True, slots=True)
class Amounts:
    """time: forward and backward ns. weights, saved: bytes. workspace: of the operator that needs most."""

    time: int = 0
    weights: int = 0
    saved: int = 0
    workspace: int = 0

    def plus(self, other: "Amounts") -> "Amounts":
        """Both, run one after the other."""
        return Amounts(
            self.time + other.time,
            self.weights + other.weights,
            self.saved + other.saved,
            max(self.workspace, other.workspace),
        )


@dataclass(frozen=True, slots=True)
class Group:
    """own: what belongs to one atom only. shared: constants and parameters that several atoms hold, each once."""

    own: Amounts
    shared: frozenset[str]


class GroupCosts:
    """Costs of groups at one number of samples, that of a replica's micro-batch while blocks are made."""

    def __init__(self, atoms: Atoms, model: CostModel, samples: int, level: LinkLevel) -> None:
        self._atoms = atoms
        self._model = model
        self._samples = samples
        self._level = level
        graph = model.graph
        terms = model.terms(samples)
        users: dict[str, int] = {}
        for operator in graph.operators:
            for name in operator.parameters:
                users[name] = users.get(name, 0) + 1
        self._shared: dict[str, Amounts] = {
            f"parameter {name}": Amounts(weights=graph.parameter_bytes[name])
            for name, count in users.items()
            if count > 1
        }
        self._single: list[Group] = []
        for op, operator in enumerate(graph.operators):
            mine = [name for name in operator.parameters if users[name] == 1]
            common = frozenset(f"parameter {name}" for name in operator.parameters if users[name] > 1)
            amounts = Amounts(
                int(terms.forward_ns[op] + terms.backward_ns[op]),
                sum(graph.parameter_bytes[name] for name in mine),
                int(terms.saved_bytes[op]),
                int(terms.workspace_bytes[op]),
            )
            if operator.constant:
                name = f"constant {operator.name}"
                self._shared[name] = amounts
                common, amounts = common | {name}, Amounts()
            self._single.append(Group(amounts, common))
        self._time: dict[frozenset[str], int] = {}
        self._sending: dict[int, int] = {}

    def atom(self, atom: int) -> Group:
        """One atom with its constants."""
        return self.joined([self._single[self._atoms.operators[atom]], *self.constants(atom)])

    def constants(self, atom: int) -> Iterable[Group]:
        """The constants of an atom."""
        return (self._single[op] for op in self._atoms.constants[atom])

    def joined(self, groups: Iterable[Group]) -> Group:
        """Their union."""
        own, shared = Amounts(), frozenset[str]()
        for group in groups:
            own, shared = own.plus(group.own), shared | group.shared
        return Group(own, shared)

    def time(self, group: Group) -> int:
        """Forward and backward ns."""
        if not group.shared:
            return group.own.time
        if group.shared not in self._time:
            self._time[group.shared] = sum(self._shared[name].time for name in group.shared)
        return group.own.time + self._time[group.shared]

    def memory(self, group: Group, received: Iterable[int], sent: Iterable[int]) -> int:
        """Bytes with one micro-batch in flight: weights and their states, activations, buffers, workspace."""
        whole = group.own
        for name in group.shared:
            whole = whole.plus(self._shared[name])
        formula = self._model.formula
        content = Holdings(
            state_bytes=formula.state_bytes(whole.weights, 1),
            saved_bytes=whole.saved,
            input_bytes=0,
            buffer_bytes=self._both_ways(received) + self._both_ways(sent),
            workspace_bytes=whole.workspace,
            fixed_bytes=0,
            transient_bytes=0,
        )
        return formula.memory(content, "none").peak(1)

    def _both_ways(self, tensors: Iterable[int]) -> int:
        model, samples = self._model, self._samples
        return sum(model.tensor_bytes(t, samples) + model.gradient_bytes(t, samples) for t in tensors)

    def communication(self, tensor: int) -> int:
        """Ns to send a tensor and its gradient from one device to another."""
        if tensor not in self._sending:
            model, samples = self._model, self._samples
            sizes = (model.tensor_bytes(tensor, samples), model.gradient_bytes(tensor, samples))
            self._sending[tensor] = sum(model.formula.message_ns(self._level, size, 1, 1) for size in sizes)
        return self._sending[tensor]
