"""Blocks of a graph: a partition, convex, in order, few enough, balanced; branches stay apart. By networkx."""

from collections.abc import Sequence
from itertools import pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.blocks.block_cuts import Block, BlockLoads, convex_blocks
from pipebench.algorithms.chains.level_cuts import balanced_cuts
from tests.algorithms.convexity import Convexity
from tests.algorithms.graphs import branches, chain, dags, graph
from tests.nightly import examples


def blocks_of(
    successors: Sequence[Sequence[int]],
    work: Sequence[int],
    blocks: int,
    held: Sequence[int] | None = None,
    most_held: int = 10**9,
) -> list[Block]:
    after = [{reader: frozenset({node}) for reader in readers} for node, readers in enumerate(successors)]
    count = len(successors)
    return convex_blocks(after, BlockLoads(work, held or [0] * count, [1] * count, most_held), blocks)


@given(successors=dags(40), blocks=st.integers(1, 12), data=st.data())
@settings(max_examples=examples(300), deadline=None)
def test_blocks_are_a_convex_partition_in_order(
    successors: list[list[int]], blocks: int, data: st.DataObject
) -> None:
    count = len(successors)
    amounts = st.lists(st.integers(0, 9), min_size=count, max_size=count)
    work, held, most_held = data.draw(amounts), data.draw(amounts), data.draw(st.integers(0, 30))
    found = blocks_of(successors, work, blocks, held, most_held)
    assert sorted(node for block in found for node in block) == list(range(count))
    assert len(found) == min(count, len(found)) <= max(blocks, 1)
    oracle = Convexity(successors)
    assert all(oracle.is_convex(block) for block in found)
    of = {node: position for position, block in enumerate(found) for node in block}
    quotient = nx.DiGraph((of[a], of[b]) for a, after in enumerate(successors) for b in after if of[a] != of[b])
    assert nx.is_directed_acyclic_graph(quotient)
    assert all(before < after for before, after in quotient.edges)
    assert found == blocks_of(successors, work, blocks, held, most_held)


@given(work=st.lists(st.integers(1, 50), min_size=2, max_size=60), blocks=st.integers(1, 10))
def test_a_chain_is_cut_in_order_and_within_a_tenth_of_the_least_largest_block(
    work: list[int], blocks: int
) -> None:
    """A chain of at most eight operators a block is cut as it is; the optimum is that of `balanced_cuts`."""
    count = len(work)
    blocks = max(blocks, -(-count // 8))
    found = blocks_of(chain(count), work, blocks)
    assert [node for block in found for node in block] == list(range(count))
    least = max(sum(work[a:b]) for a, b in pairwise(balanced_cuts(work, min(blocks, count))))
    assert max(sum(work[node] for node in block) for block in found) <= 1.1 * least


def test_a_long_chain_is_balanced() -> None:
    work = [1 + (7 * node) % 13 for node in range(2000)]
    found = blocks_of(chain(2000), work, 16)
    assert len(found) == 16
    assert max(sum(work[node] for node in block) for block in found) <= 1.15 * sum(work) / 16


def test_a_heavy_operator_stands_alone_and_the_rest_is_balanced() -> None:
    found = blocks_of(chain(101), [1] * 50 + [1000] + [1] * 50, 11)
    assert (50,) in found
    assert sorted(map(len, found)) == [1, *[10] * 10]


def test_branches_stay_apart() -> None:
    """Four branches of 100 operators that one operator joins: no block holds operators of two of them."""
    successors = branches([100] * 4, 1)
    found = blocks_of(successors, [5] * 401, 16)
    for block in found:
        assert len({node // 100 for node in block if node < 400}) <= 1
    assert max(map(len, found)) <= 40


def test_small_branches_are_joined_before_large_ones() -> None:
    """Two branches, each a chain of forks of three: blocks hold whole forks, never both branches."""
    edges: list[tuple[int, int]] = []
    for first in range(0, 400, 5):
        edges += [(first, first + i) for i in (1, 2, 3)] + [(first + i, first + 4) for i in (1, 2, 3)]
        if first % 200 != 195:
            edges.append((first + 4, first + 5))
    found = blocks_of(graph(400, edges), [1] * 400, 10)
    assert all(len({node // 200 for node in block}) == 1 for block in found)
    assert max(map(len, found)) <= 80


def test_blocks_keep_no_more_than_they_may() -> None:
    """Ten operators of 6 bytes: 4 blocks of at most 20 bytes are enough; for 3 the limit is given up."""
    assert max(map(len, blocks_of(chain(10), [0] * 9 + [9], 4, [6] * 10, 20))) == 3
    assert len(blocks_of(chain(10), [1] * 10, 3, [6] * 10, 20)) == 3


def test_the_cut_goes_where_few_bytes_cross() -> None:
    after = [{node + 1: frozenset({node})} for node in range(39)] + [{}]
    sent = [1 if node % 10 == 9 else 100 for node in range(40)]
    found = convex_blocks(after, BlockLoads([10] * 40, [0] * 40, sent, 0), 4)
    assert [block[0] for block in found] == [0, 10, 20, 30]
