"""From a series-parallel tree to the space of stages and the program that measures them."""

from collections.abc import Hashable, Sequence

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import OperatorCosts
from pipebench_graphpipe.program import NOT_A_STAGE, StageProgram
from pipebench_graphpipe.series_parallel import LeafNode, Node, ParallelNode, SeriesNode, leaves, parts
from pipebench_graphpipe.space import (
    PLAIN,
    Branch,
    Fork,
    Head,
    OperatorChain,
    Operators,
    Tail,
    absorbed_branches,
    agree,
    left_out,
    whole,
)

LIGHT = 1 / 20
"""Share of a fork's work below which a branch counts as light."""
MOST_OWNERS = 8
"""Owners offered at either end of a fork: of more, half from the heaviest and half from the lightest branches."""

Choice = tuple[int | None, int]
"""Owner, number of whole branches absorbed."""


def tail_choices(fork: Fork, level: int, is_last: bool) -> list[tuple[int | None, int, bool]]:
    """The owners that the operators behind a fork may have: the last stage of one branch, or a group of whole
    branches.

    GraphPipe leaves open to which stage a shared operator belongs; the other branches then lead to the owner. The
    owner may take the lightest other branches along, and then need not own anything behind the fork.

    is_last: nothing stands behind the fork.

    The third value of each choice says whether the stage continues behind the fork.
    """
    choices = _choices(fork, level, [b for b, branch in enumerate(fork.branches) if branch.alike == 1])
    joining = [] if is_last else [(owner, absorbed, True) for owner, absorbed in choices]
    return joining + [(owner, absorbed, False) for owner, absorbed in choices if owner is not None and absorbed]


def head_choices(fork: Fork, level: int) -> list[Choice]:
    """The owners that operators before a fork may have, by the same rules.

    Of equal branches the second is offered too: the first may own a tail.
    """
    owners = [b for b, branch in enumerate(fork.branches) if branch.alike <= 2]
    return _choices(fork, level, owners)


def _choices(fork: Fork, level: int, owners: list[int]) -> list[Choice]:
    if len(owners) > MOST_OWNERS:
        owners = owners[: MOST_OWNERS // 2] + owners[-(MOST_OWNERS // 2) :]
    whole: list[Choice] = [(None, absorbed) for absorbed in range(1, len(fork.branches))]
    return whole + [(owner, absorbed) for owner in owners for absorbed in _branches_to_absorb(fork, owner, level)]


def _branches_to_absorb(fork: Fork, owner: int, level: int) -> list[int]:
    """Numbers of branches that an owner may take along; level 0: none, 1: the light ones or all, 2: any."""
    others = [branch.work for number, branch in enumerate(fork.branches) if number != owner]
    if level == 0:
        return [0]
    if level == 1:
        total = sum(branch.work for branch in fork.branches)
        return sorted({0, sum(work < LIGHT * total for work in others), len(others)})
    return list(range(len(others) + 1))


LARGEST_TABLE = 200_000
"""Stages of one chain up to which owners are offered more ways to take whole branches along."""
LEVELS = (2, 1, 0)
"""What owners may take along (ownership._absorbed), the most first."""


def lay_out(chain: OperatorChain) -> None:
    """Set the heads and tails of a chain's forks, its ends and its width; rows are left to the program."""
    for level in LEVELS:
        _lay_out(chain, level)
        if _starts(chain) * chain.width <= 2 * LARGEST_TABLE:
            break


def _lay_out(chain: OperatorChain, level: int) -> None:
    width = 0
    ends = []
    for position in range(chain.length + 1):
        ends.append(width)
        width += 1
        if position not in chain.forks:
            continue
        fork = chain.forks[position]
        heads = []
        for owner, absorbed in head_choices(fork, level) if position > 0 else ():
            heads.append(Head(owner, absorbed, width, _pieces(chain, position, owner)))
            width += heads[-1].count
        fork.heads = tuple(heads)
    for position, fork in chain.forks.items():
        behind = ends[position + 1]
        fork.tails = tuple(
            Tail(owner, absorbed, joins, behind + joins, width if joins else behind + 1, [])
            for owner, absorbed, joins in tail_choices(fork, level, position == chain.length - 1)
        )
    chain.ends = np.array(ends, np.int64)
    chain.width = width


def _pieces(chain: OperatorChain, position: int, owner: int | None) -> int:
    return 1 if owner is None else len(chain.forks[position].branches[owner].elements)


def _starts(chain: OperatorChain) -> int:
    tails = (_pieces(chain, position, tail.owner) for position, fork in chain.forks.items() for tail in fork.tails)
    return chain.length + sum(tails)


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
    if isinstance(node, LeafNode):
        return ""
    return "S" if isinstance(node, SeriesNode) else "P", tuple(map(_shape, node.children))


class Compiler:
    """Compiles trees of one graph. memo: branches that are alike share one chain."""

    def __init__(self, graph: OperatorGraph, costs: Sequence[OperatorCosts], memo: bool) -> None:
        self.program = StageProgram()
        self._signatures = Signatures(graph, costs)
        self._memo = memo
        self._work = [sum(c.forward_s) + sum(c.backward_s) for c in costs]

    def chain(self, node: Node) -> OperatorChain:
        """The chain of a tree, its stages written to the program."""
        children = parts(node)
        chain = OperatorChain(
            elements=tuple(tuple(leaves(child)) for child in children),
            forks={at: self._fork(child) for at, child in enumerate(children) if isinstance(child, ParallelNode)},
        )
        lay_out(chain)
        self._write(chain)
        return chain

    def _fork(self, node: ParallelNode) -> Fork:
        listed = [(sum(self._work[o] for o in leaves(child)), child) for child in node.children]
        listed.sort(key=lambda entry: -entry[0])
        alike: dict[object, list[OperatorChain]] = {}
        branches = []
        for number, (work, child) in enumerate(listed):
            chains = alike.setdefault(self._signatures.of(child) if self._memo else number, [])
            chains.append(chains[0] if chains else self.chain(child))
            branches.append(
                Branch(
                    elements=tuple(tuple(leaves(part)) for part in parts(child)),
                    operators=tuple(leaves(child)),
                    work=work,
                    chain=chains[0],
                    alike=len(chains),
                )
            )
        return Fork(tuple(branches))

    def _write(self, chain: OperatorChain) -> None:
        """Steps that walk along the chain, into each head on the way; then a row for each start."""
        program = self.program
        begins = []
        for at, element in enumerate(chain.elements):
            begins.append(program.position)
            if at in chain.forks:
                self._write_heads(chain.forks[at])
            program.add(element, int(chain.ends[at + 1]))
        begins.append(program.position)
        rows = []
        for at, element in enumerate(chain.elements):
            end = int(chain.ends[at + 1])
            rows.append(program.row([element], end, begins[at + 1], end, chain.width))
        chain.rows = np.array(rows, np.int64)
        for at, fork in chain.forks.items():
            for tail in fork.tails:
                self._write_tail(fork, tail, int(chain.ends[at + 1]), begins[at + 1])
        for fork in chain.forks.values():
            self._write_runs(fork)

    def _write_heads(self, fork: Fork) -> None:
        for head in fork.heads:
            along = whole(fork, absorbed_branches(fork, head))
            if head.owner is None:
                self.program.add(along, head.end)
                self.program.remove(1)
                continue
            elements = fork.branches[head.owner].elements
            self.program.add(along)
            for at, element in enumerate(elements):
                self.program.add(element, head.end + at)
            self.program.remove(1 + len(elements))

    def _write_tail(self, fork: Fork, tail: Tail, end: int, begin: int) -> None:
        along = whole(fork, absorbed_branches(fork, tail))
        elements = fork.branches[tail.owner].elements if tail.owner is not None else ((),)
        for at in range(len(elements)):
            prelude = [along, *elements[at:]]
            if tail.joins:
                tail.rows.append(self.program.row(prelude, NOT_A_STAGE, begin, tail.first_end, tail.last_end))
            else:
                tail.rows.append(self.program.row(prelude, end, self.program.position, end, end + 1))

    def _write_runs(self, fork: Fork) -> None:
        """Runs of whole branches as one stage, for every set of owners that may be left out."""
        for tail in (PLAIN, *fork.tails):
            fork.agreeing[tail] = tuple(head for head in fork.heads if agree(fork, tail, head))
            for head in (None, *fork.agreeing[tail]):
                owners = left_out(tail, head)
                if owners not in fork.others:
                    listed = tuple(b for b in range(len(fork.branches)) if b not in owners)
                    fork.others[owners] = listed, self._run_rows([fork.branches[b].operators for b in listed])

    def _run_rows(self, groups: Sequence[Operators]) -> IntArray:
        begin = self.program.position
        for at, group in enumerate(groups):
            self.program.add(group, at + 1)
        rows = [
            self.program.row([group], at + 1, begin + at + 1, at + 1, len(groups) + 1)
            for at, group in enumerate(groups)
        ]
        return np.array(rows, np.int64)
