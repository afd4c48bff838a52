"""Plans for the grouped problem cost what they cost operator by operator."""

from hypothesis import given, settings

from pipebench.algorithms.blocks.grouped import group_name, grouped_problem, ungrouped_plan
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from tests.builders import chain_problem, cluster
from tests.plugins.rannc.strategies import problems


@given(problem=problems(constants=False))
@settings(max_examples=100, deadline=None)
def test_times_messages_and_weights_are_equal_and_memory_is_no_less(problem: Problem) -> None:
    graph = problem.profile.graph
    order = graph.topological
    half = -(-len(order) // 2)
    groups = [part for part in (order[: half // 2], order[half // 2 : half], order[half:]) if part]
    names = [[graph.operators[op].name for op in group] for group in groups]
    made = grouped_problem(CostModel(problem), groups, [1, 2])
    assert made is not None
    plan = Plan(
        stages=tuple(
            Stage(operators=(group_name(group),), devices=(group,), micro_batch=2) for group in range(len(groups))
        )
    )
    real = ungrouped_plan(plan, names)
    coarse, fine = CostModel(made), CostModel(problem)
    edges = coarse.messages(plan), fine.messages(real)
    for at in range(len(groups)):
        assert coarse.stage_times(plan.stages[at], plan) == fine.stage_times(real.stages[at], real)
        assert coarse.parameter_bytes(plan.stages[at]) == fine.parameter_bytes(real.stages[at])
        less, more = fine.stage_memory(real, at, edges[1]), coarse.stage_memory(plan, at, edges[0])
        assert (less.held, less.while_live, less.workspace) == (more.held, more.while_live, more.workspace)
        assert less.per_micro_batch <= more.per_micro_batch
    assert sorted(coarse.message_ns(plan, m) for m in edges[0]) == sorted(
        fine.message_ns(real, m) for m in edges[1]
    )


def test_groups_that_share_an_operator_are_refused() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(2))
    assert grouped_problem(CostModel(problem), [[0, 1], [1]], [1]) is None
