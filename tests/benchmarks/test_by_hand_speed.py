"""What docs/explanation/by-hand.md says of speed: our graph kernels and networkx, in one run, answers compared."""

import random
from collections.abc import Callable
from time import process_time
from typing import Any

import networkx as nx
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.algorithms.graph_orders import descendants, members, transitive_reduction
from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.domain.topology import topological_order
from pipebench.formats.profiles.pipedream_graph import _descendants
from tests.benchmarks.timed import only_when_measured

pytestmark = pytest.mark.benchmark(timer=process_time)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    before = process_time()
    answer = work()
    return answer, process_time() - before


def chain_with_skips(count: int) -> list[list[int]]:
    """A chain, and from each operator an edge to one of the next fifty."""
    draw = random.Random(0)
    return [
        sorted({min(node + 1, count - 1), min(node + draw.randint(1, 50), count - 1)} - {node})
        for node in range(count)
    ]


def test_a_graph_takes_twice_as_long_to_build_with_networkxs_order(benchmark: BenchmarkFixture) -> None:
    """10,000 operators: 2.4 times on the page."""
    only_when_measured(benchmark)
    successors = chain_with_skips(10_000)
    reads: list[list[str]] = [[] for _ in successors]
    for node, after in enumerate(successors):
        for reader in after:
            reads[reader].append(f"t{node}")
    operators = tuple(Operator(name=f"o{n}", kind="op", inputs=tuple(each)) for n, each in enumerate(reads))
    tensors = tuple(
        Tensor(name=f"t{node}", producer=f"o{node}", forward_bytes_per_sample=1.0, gradient_bytes_per_sample=1.0)
        for node, after in enumerate(successors)
        if after
    )

    def build() -> OperatorGraph:
        return OperatorGraph(name="large", operators=operators, tensors=tensors)

    names = [operator.name for operator in operators]
    ours, ours_s = timed(lambda: topological_order(successors, names))
    theirs, theirs_s = timed(
        lambda: tuple(nx.lexicographical_topological_sort(nx.DiGraph(dict(enumerate(successors)))))
    )
    assert theirs == ours
    benchmark.pedantic(build, rounds=5, warmup_rounds=1)
    build_s = benchmark.stats.stats.median
    benchmark.extra_info["ratio"] = (build_s - ours_s + theirs_s) / build_s
    assert benchmark.extra_info["ratio"] > 1.5


def test_reachability_and_reduction_by_bit_sets(benchmark: BenchmarkFixture) -> None:
    """1,000 operators: 1 ms and 0.5 s on the page."""
    only_when_measured(benchmark)
    successors = chain_with_skips(1000)
    graph = nx.DiGraph(dict(enumerate(successors)))
    closure, closure_s = timed(lambda: nx.transitive_closure_dag(graph))
    reduced, reduced_s = timed(lambda: nx.transitive_reduction(graph))
    reached, kept = benchmark(lambda: (descendants(successors), transitive_reduction(successors)))
    assert [set(members(after)) for after in reached] == [set(closure[node]) for node in closure]
    assert kept == [sorted(reduced[node]) for node in range(len(successors))]
    benchmark.extra_info["ratio"] = (closure_s + reduced_s) / benchmark.stats.stats.median
    assert benchmark.extra_info["ratio"] > 100


def test_what_many_inputs_reach(benchmark: BenchmarkFixture) -> None:
    """1,000 inputs of a chain of 1,000 operators: 1 ms and 1.4 s on the page."""
    only_when_measured(benchmark)
    inputs, operators = [f"i{n}" for n in range(1000)], [f"o{n}" for n in range(1000)]
    reads = {name: [] for name in inputs} | {
        name: ([operators[n - 1]] if n else list(inputs)) for n, name in enumerate(operators)
    }
    graph = nx.DiGraph([(before, after) for after, befores in reads.items() for before in befores])
    theirs, theirs_s = timed(lambda: set[str]().union(*(nx.descendants(graph, name) for name in inputs)))
    found = benchmark(lambda: _descendants(set(inputs), reads))
    assert set(found) - set(inputs) == theirs == set(operators)
    benchmark.extra_info["ratio"] = theirs_s / benchmark.stats.stats.median
    assert benchmark.extra_info["ratio"] > 300
