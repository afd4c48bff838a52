"""Blocks are convex, fit, have an order, and hold every operator that is not constant once."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.domain.problem import Problem
from pipebench_rannc.atoms import atoms_of
from pipebench_rannc.blocks import Blocks, Recipe, crossing, partition
from tests.algorithms.convexity import Convexity
from tests.builders import chain_problem, cluster, dag_problem
from tests.nightly import examples
from tests.plugins.rannc.made import blocks_of, costs_of
from tests.plugins.rannc.strategies import problems

RECIPES = st.builds(
    Recipe,
    blocks=st.integers(1, 6),
    limit_bytes=st.sampled_from([1500, 3000, 10**9]),
    released_coarsening=st.booleans(),
    uncoarsening=st.booleans(),
    by_union=st.booleans(),
)


def operators_of(blocks: Blocks) -> list[set[int]]:
    return [{blocks.atoms.operators[atom] for atom in block} for block in blocks.members]


@given(problem=problems(), recipe=RECIPES)
@settings(max_examples=examples(300), deadline=None)
def test_every_block_is_convex_and_every_varying_operator_is_in_one(problem: Problem, recipe: Recipe) -> None:
    graph = problem.profile.graph
    blocks = blocks_of(problem, recipe)
    found = operators_of(blocks)
    varying = {op for op, operator in enumerate(graph.operators) if not operator.constant}
    assert set().union(*found) == varying
    assert not any(one & other for one, other in combinations(found, 2))
    convexity = Convexity(graph.successors)
    assert all(convexity.is_convex(sorted(block)) for block in found)
    for place, block in enumerate(found):
        later: set[int] = set().union(*found[place + 1 :])
        assert not any(set(graph.predecessors[op]) & later for op in block)


@given(problem=problems(), recipe=RECIPES)
@settings(max_examples=examples(200), deadline=None)
def test_joined_blocks_fit(problem: Problem, recipe: Recipe) -> None:
    costs = costs_of(problem)
    blocks = blocks_of(problem, recipe)
    for members in blocks.members:
        if len(members) > 1:
            group = costs.union([costs.atom(atom) for atom in members])
            assert costs.memory(group, *crossing(blocks.atoms, set(members))) <= recipe.limit_bytes


@given(problem=problems(), blocks=st.integers(1, 9))
@settings(max_examples=examples(150), deadline=None)
def test_there_are_k_blocks_where_everything_fits(problem: Problem, blocks: int) -> None:
    made = blocks_of(problem, Recipe(blocks=blocks, limit_bytes=2**60))
    assert len(made) == min(blocks, len(made.atoms))


@given(problem=problems())
@settings(max_examples=examples(100), deadline=None)
def test_constants_are_in_every_block_that_needs_them(problem: Problem) -> None:
    graph = problem.profile.graph
    blocks = blocks_of(problem, Recipe(blocks=3, limit_bytes=2**60))
    held = [set(each) for each in blocks.positions]
    assert set().union(*held) == set(range(len(graph.operators)))
    for members in held:
        for op in members:
            assert {p for p in graph.predecessors[op] if graph.operators[p].constant} <= members


def test_two_convex_groups_do_not_wait_for_each_other() -> None:
    """a -> b and c -> d: {a, d} and {b, c} are both convex, but each would wait for the other."""
    problem = dag_problem(
        [1, 10, 10, 1, 1], [0] * 5, [(0, (1,), 1), (2, (3,), 1), (0, (4,), 1), (3, (4,), 1)], cluster(2)
    )
    blocks = blocks_of(problem, Recipe(blocks=2, limit_bytes=2**60))
    assert len(blocks) == 2


def test_the_lightest_block_is_joined_with_the_lighter_neighbour() -> None:
    """Times 9 1 2 8: coarsening to three blocks joins 1 with 2."""
    blocks = blocks_of(chain_problem([9, 1, 2, 8], [0] * 4, cluster(2)), Recipe(blocks=3, limit_bytes=2**60))
    assert blocks.members == ((0,), (1, 2), (3,))


def test_balanced_blocks_of_a_uniform_chain() -> None:
    blocks = blocks_of(chain_problem([1] * 32, [2] * 32, cluster(2)), Recipe(blocks=8, limit_bytes=2**60))
    assert [len(block) for block in blocks.members] == [4] * 8


def test_a_piece_moves_to_the_block_that_it_talks_to() -> None:
    """Light operators 1 and 2 pair up first; the large tensor from 2 to 3 pulls 2 over."""
    problem = chain_problem([5, 1, 1, 5], [0] * 4, cluster(2), activations=[0, 1, 1, 1000, 0])
    kept = blocks_of(problem, Recipe(blocks=2, limit_bytes=2**60, uncoarsening=False))
    moved = blocks_of(problem, Recipe(blocks=2, limit_bytes=2**60))

    def sent(blocks: Blocks) -> int:
        costs = costs_of(problem)
        return sum(
            sum(map(costs.communication, crossing(blocks.atoms, set(block))[1])) for block in blocks.members
        )

    assert sent(moved) <= sent(kept)
    assert moved.members[0][-1] != 2


@given(problem=problems(most=12), blocks=st.integers(2, 4))
@settings(max_examples=examples(150), deadline=None)
def test_uncoarsening_never_sends_more(problem: Problem, blocks: int) -> None:
    costs = costs_of(problem)

    def sent(uncoarsening: bool) -> int:
        made = blocks_of(problem, Recipe(blocks=blocks, limit_bytes=2**60, uncoarsening=uncoarsening))
        if made.counters.get("coarse_groups", blocks) > blocks:
            return 0
        at = {atom: block for block, members in enumerate(made.members) for atom in members}
        total = 0
        for tensor, producer in enumerate(problem.profile.graph.producers):
            if producer in made.atoms.operators:
                home = at[made.atoms.operators.index(producer)]
                readers = {at[made.atoms.operators.index(op)] for op in problem.profile.graph.consumers[tensor]}
                total += costs.communication(tensor) * len(readers - {home})
        return total

    assert sent(True) <= sent(False)


def test_a_graph_of_constants_is_refused() -> None:
    graph = OperatorGraph(
        name="constants",
        operators=(
            Operator(name="a", kind="op", constant=True),
            Operator(name="b", kind="op", constant=True, inputs=("t",)),
        ),
        tensors=(Tensor(name="t", producer="a", forward_bytes_per_sample=1.0, gradient_bytes_per_sample=0.0),),
    )
    with pytest.raises(UnsupportedProblem, match="every operator of 'constants' is constant"):
        atoms_of(graph)


def test_no_blocks_means_atoms() -> None:
    problem = chain_problem([1] * 5, [1] * 5, cluster(2))
    assert len(blocks_of(problem, Recipe(blocks=0, limit_bytes=0))) == 5


def test_the_clock_is_looked_at() -> None:
    problem = chain_problem([1] * 50, [1] * 50, cluster(2))
    looks = []
    partition(
        atoms_of(problem.profile.graph),
        costs_of(problem),
        Recipe(blocks=2, limit_bytes=2**60),
        lambda: looks.append(1),
    )
    assert looks
