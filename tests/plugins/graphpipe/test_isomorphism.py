"""Signatures: equal for copies of a branch, different for anything that changes what a stage costs."""

import msgspec
import pytest

from pipebench.domain.graph import Parameter
from pipebench.domain.problem import Problem
from pipebench_graphpipe.compiler import Signatures
from pipebench_graphpipe.series_parallel import ParallelNode, decompose, parts
from tests.builders import cluster, dag_problem

# Three branches of three operators with a skip, from operator 0 to operator 10.
EDGES = [edge for a in (1, 4, 7) for edge in ((0, (a,)), (a, (a + 1, a + 2)), (a + 1, (a + 2,)), (a + 2, (10,)))]


def three_branches(**changes: list[int]) -> Problem:
    tensors = [(0, (1, 4, 7), 8)] + [(source, readers, 4) for source, readers in EDGES if source]
    costs = {"forward": [3] * 11, "backward": [5] * 11, "weights": [7] * 11, "saved": [2] * 11, **changes}
    return dag_problem(
        costs["forward"], costs["backward"], tensors, cluster(4), weights=costs["weights"], saved=costs["saved"]
    )


def signatures(problem: Problem) -> list[object]:
    graph = problem.profile.graph
    fork = parts(decompose(graph.successors).tree)[1]
    assert isinstance(fork, ParallelNode)
    made = Signatures(graph, problem.profile.costs[0].operators)
    return [made.of(branch) for branch in fork.children]


def test_copies_are_alike() -> None:
    assert len(set(signatures(three_branches()))) == 1


@pytest.mark.parametrize("what", ["forward", "backward", "weights", "saved"])
def test_another_cost_in_one_branch_sets_it_apart(what: str) -> None:
    changed = [3] * 11
    changed[5] = 4
    one, other, third = signatures(three_branches(**{what: changed}))
    assert one == third != other


def with_operator(problem: Problem, number: int, **changes: object) -> Problem:
    graph = problem.profile.graph
    operators = list(graph.operators)
    operators[number] = msgspec.structs.replace(operators[number], **changes)
    parameters = {p.name: p for p in (*graph.parameters, Parameter(name="shared", bytes=7))}
    graph = msgspec.structs.replace(graph, operators=tuple(operators), parameters=tuple(parameters.values()))
    return msgspec.structs.replace(problem, profile=msgspec.structs.replace(problem.profile, graph=graph))


def test_a_tensor_read_elsewhere_sets_a_branch_apart() -> None:
    problem = three_branches()
    inputs = problem.profile.graph.operators[10].inputs
    read = problem.profile.graph.operators[6].inputs
    one, other, third = signatures(with_operator(problem, 10, inputs=(*inputs, read[0])))
    assert one == third != other


def test_a_weight_shared_with_an_operator_outside_sets_a_branch_apart() -> None:
    shared = with_operator(with_operator(three_branches(), 5, parameters=("shared",)), 10, parameters=("shared",))
    one, other, third = signatures(shared)
    assert one == third != other


def test_a_weight_shared_by_all_branches_leaves_them_alike() -> None:
    problem = three_branches()
    for number in (2, 5, 8):
        problem = with_operator(problem, number, parameters=("shared",))
    assert len(set(signatures(problem))) == 1
