"""The messages of a plan, asked for again and again: of this graph and this plan, whatever came before."""

from pipebench.costs.messages import Message, messages
from tests.builders import cluster, dag_problem, stages_plan


def test_one_plan_on_two_graphs_and_two_plans_on_one() -> None:
    chain, fork = (
        dag_problem([1, 1, 1], [1, 1, 1], [(0, (1,), 1), (source, (2,), 1)], cluster(3)).profile.graph
        for source in (1, 0)
    )
    apart, joined = stages_plan([[0], [1], [2]]), stages_plan([[0, 1], [2]])
    expected = [
        (chain, apart, {(0, 1), (1, 2)}),
        (fork, apart, {(0, 1), (0, 2)}),
        (chain, joined, {(0, 1)}),
        (chain, apart, {(0, 1), (1, 2)}),
    ]
    for graph, plan, pairs in expected:
        for _ in range(2):
            found = messages(graph, plan)
            assert all(isinstance(each, Message) for each in found)
            assert {(each.source, each.target) for each in found} == pairs
