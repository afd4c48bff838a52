"""From a series-parallel tree to the space of stages and the program that measures them."""

from collections.abc import Sequence

import numpy as np

from pipebench.algorithms.isomorphism import Signatures
from pipebench.algorithms.sp_tree import Node, Parallel, leaves, parts
from pipebench.costs.quantise import IntArray
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import OperatorCosts
from pipebench_graphpipe.layout import lay_out
from pipebench_graphpipe.program import NOT_A_STAGE, Program
from pipebench_graphpipe.space import (
    PLAIN,
    Branch,
    Chain,
    Fork,
    Operators,
    Tail,
    absorbed_branches,
    agree,
    left_out,
)
from pipebench_graphpipe.stage_sets import whole


class Compiler:
    """Compiles trees of one graph. memo: branches that are alike share one chain."""

    def __init__(self, graph: OperatorGraph, costs: Sequence[OperatorCosts], memo: bool) -> None:
        self.program = Program()
        self._signatures = Signatures(graph, costs)
        self._memo = memo
        self._work = [sum(c.forward_s) + sum(c.backward_s) for c in costs]

    def chain(self, node: Node) -> Chain:
        """The chain of a tree, its stages written to the program."""
        children = parts(node)
        chain = Chain(
            elements=tuple(tuple(leaves(child)) for child in children),
            forks={at: self._fork(child) for at, child in enumerate(children) if isinstance(child, Parallel)},
        )
        lay_out(chain)
        self._write(chain)
        return chain

    def _fork(self, node: Parallel) -> Fork:
        listed = [(sum(self._work[o] for o in leaves(child)), child) for child in node.children]
        listed.sort(key=lambda entry: -entry[0])
        alike: dict[object, list[Chain]] = {}
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

    def _write(self, chain: Chain) -> None:
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
