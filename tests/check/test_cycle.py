"""The shortest cycle against all cycles, and the witness of C1 against all paths."""

import subprocess
import sys

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from pipebench.check import check_plan
from pipebench.check.structure import shortest_cycle
from tests.builders import cluster, dag_problem, stages_plan


@given(st.integers(1, 7), st.data())
def test_no_cycle_is_shorter(size: int, data: st.DataObject) -> None:
    node = st.integers(0, size - 1)
    successors = [data.draw(st.sets(node, max_size=3)) for _ in range(size)]
    graph = nx.DiGraph({node: list(after) for node, after in enumerate(successors)})
    cycles = list(nx.simple_cycles(graph))
    found = shortest_cycle(successors)
    if not cycles:
        assert found == []
        return
    least = min(map(len, cycles))
    assert len(found) == least
    assert nx.is_path(graph, [*found, found[0]])
    assert len(set(found)) == least
    assert found[0] == min(found) == min(min(cycle) for cycle in cycles if len(cycle) == least)


def test_ends_of_the_range() -> None:
    assert shortest_cycle([]) == []
    assert shortest_cycle([{1, 2}, {2}, set()]) == []
    assert shortest_cycle([set(), {1}]) == [1]


def test_networkx_is_loaded_only_for_a_graph_with_a_cycle() -> None:
    code = (
        "import sys; from pipebench.check.structure import shortest_cycle; shortest_cycle([{1}, set()]);"
        "before = 'networkx' in sys.modules; shortest_cycle([{1}, {0}]); print(before, 'networkx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_path_that_is_told_is_the_shortest() -> None:
    # Back to operator 5: from 0 by 1 and 2, or from 3 by 4 alone; from 0 also directly, which leaves no stage.
    edges = [(0, 1), (1, 2), (2, 5), (3, 4), (4, 5), (0, 5)]
    problem = dag_problem([1] * 6, [1] * 6, [(before, (after,), 1) for before, after in edges], cluster(3))
    witness = check_plan(problem, stages_plan([[0, 3, 5], [1, 2], [4]])).witness
    assert witness is not None
    assert witness.operator == "op4"
    assert witness.message.endswith("returns: op3 (stage 0) -> op4 (stage 2) -> op5 (stage 0)")
