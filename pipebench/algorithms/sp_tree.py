"""The tree of a series-parallel graph: operators, runs one after another, branches side by side."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leaf:
    """One operator."""

    operator: int


@dataclass(frozen=True, slots=True)
class Series:
    """Two or more parts, each after the one before it; none is a Series itself."""

    children: "tuple[Leaf | Parallel, ...]"


@dataclass(frozen=True, slots=True)
class Parallel:
    """Two or more branches between the same points; none is a Parallel itself."""

    children: tuple[Leaf | Series, ...]


Node = Leaf | Series | Parallel


def leaves(node: Node) -> Iterator[int]:
    """Operators from left to right: a topological order."""
    stack: list[Node] = [node]
    while stack:
        top = stack.pop()
        if isinstance(top, Leaf):
            yield top.operator
        else:
            stack.extend(reversed(top.children))


def parts(node: Node) -> tuple[Leaf | Parallel, ...]:
    """The parts of a Series; a Leaf or a Parallel is the only part of itself."""
    return node.children if isinstance(node, Series) else (node,)
