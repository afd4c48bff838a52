"""Atomic subcomponents (an operator and clones of its constants), and what groups of them cost."""

from collections.abc import Iterable
from dataclasses import dataclass

from pipebench.costs.formula import Holdings
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import OperatorGraph


@dataclass(frozen=True, slots=True)
class Atoms:
    """The atomic subcomponents of a graph in topological order. An atom is a position in `operators`.

    operators: the non-constant operator of each atom.
    constants: the constant operators of which each atom holds a clone.
    after: for each atom, the atoms that read its outputs, with the tensors.
    """

    graph: OperatorGraph
    operators: tuple[int, ...]
    constants: tuple[frozenset[int], ...]
    after: tuple[dict[int, frozenset[int]], ...]

    def __len__(self) -> int:
        return len(self.operators)

    def names(self, atoms: list[int]) -> tuple[str, ...]:
        """Names of all operators of some atoms, constants once, in topological order."""
        held = {self.operators[atom] for atom in atoms}.union(*(self.constants[atom] for atom in atoms))
        return tuple(self.graph.operators[op].name for op in self.graph.topological if op in held)


def atoms_of(graph: OperatorGraph) -> Atoms:
    """Atomic-level partitioning (RaNNC, section III-A): constants are cloned into each of their consumers.

    A constant that no other operator needs goes to the first atom. Raises UnsupportedProblem for a graph whose
    operators are all constant: none of them may be a stage.
    """
    varying = tuple(op for op in graph.topological if not graph.operators[op].constant)
    if not varying:
        raise UnsupportedProblem(
            f"every operator of {graph.name!r} is constant: rannc has nothing to put into stages",
            "a stage needs an operator that depends on the model's input",
        )
    above: dict[int, frozenset[int]] = {}
    for op in graph.topological:
        if graph.operators[op].constant:
            before = graph.predecessors[op]
            above[op] = frozenset({op}).union(*(above[p] for p in before))
    atom_of = {op: atom for atom, op in enumerate(varying)}
    constants = [
        frozenset[int]().union(*(above[p] for p in graph.predecessors[op] if p in above)) for op in varying
    ]
    idle = frozenset(above).difference(*constants)
    constants[0] = constants[0].union(*(above[op] for op in idle))
    after: list[dict[int, set[int]]] = [{} for _ in varying]
    for tensor, producer in enumerate(graph.producers):
        if producer in atom_of:
            for reader in graph.consumers[tensor]:
                after[atom_of[producer]].setdefault(atom_of[reader], set()).add(tensor)
    return Atoms(
        graph,
        varying,
        tuple(constants),
        tuple({reader: frozenset(tensors) for reader, tensors in each.items()} for each in after),
    )


@dataclass(frozen=True, slots=True)
class Amounts:
    """Sums over some operators.

    time: forward and backward, in ns.
    weights, saved: bytes.
    workspace: bytes of the operator that needs most.
    """

    time: int = 0
    weights: int = 0
    saved: int = 0
    workspace: int = 0

    def plus(self, other: "Amounts") -> "Amounts":
        """The amounts of both, run one after the other."""
        return Amounts(
            self.time + other.time,
            self.weights + other.weights,
            self.saved + other.saved,
            max(self.workspace, other.workspace),
        )


@dataclass(frozen=True, slots=True)
class AtomGroup:
    """What a group of atoms costs.

    own: amounts of what one atom alone holds.
    shared: constants and parameters that several atoms hold; each counts once.
    """

    own: Amounts
    shared: frozenset[str]


class GroupCosts:
    """Costs of groups at one number of samples: that of a replica's micro-batch while blocks are made."""

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
        self._single: list[AtomGroup] = []
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
            self._single.append(AtomGroup(amounts, common))
        self._time: dict[frozenset[str], int] = {}
        self._sending: dict[int, int] = {}

    def atom(self, atom: int) -> AtomGroup:
        """One atom with its constants."""
        return self.union([self._single[self._atoms.operators[atom]], *self.constants(atom)])

    def constants(self, atom: int) -> Iterable[AtomGroup]:
        """The constants of an atom."""
        return (self._single[op] for op in self._atoms.constants[atom])

    def union(self, groups: Iterable[AtomGroup]) -> AtomGroup:
        """The union of the groups; what they share counts once."""
        own, shared = Amounts(), frozenset[str]()
        for group in groups:
            own, shared = own.plus(group.own), shared | group.shared
        return AtomGroup(own, shared)

    def time(self, group: AtomGroup) -> int:
        """Forward and backward ns."""
        if not group.shared:
            return group.own.time
        if group.shared not in self._time:
            self._time[group.shared] = sum(self._shared[name].time for name in group.shared)
        return group.own.time + self._time[group.shared]

    def memory(self, group: AtomGroup, received: Iterable[int], sent: Iterable[int]) -> int:
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
            unit_bytes=0,
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
