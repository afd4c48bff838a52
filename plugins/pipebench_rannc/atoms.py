"""Atomic subcomponents: one operator that depends on the input, with clones of the constants that it needs."""

from dataclasses import dataclass

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import OperatorGraph


@dataclass(frozen=True, slots=True)
class Atoms:
    """The atomic subcomponents of a graph in topological order; positions in `operators` are the atoms.

    operators: the non-constant operator of each. constants: the constant operators that each holds a clone of.
    after: for each atom the atoms that read what it makes, with the tensors.
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
