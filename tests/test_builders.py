"""The builders give problems whose costs are the integers that were put in."""

from pipebench.costs.model import CostModel
from tests.builders import chain_problem, cluster, stages_plan


def test_chain_costs_are_the_integers_given() -> None:
    problem = chain_problem([2, 7, 8], [1, 15, 11], cluster(2), activations=[1, 3, 15, 0], weights=[1, 1, 2])
    model = CostModel(problem)
    plan = stages_plan([[0], [1, 2]])
    assert [(t.forward, t.backward) for t in map(model.stage_times, plan.stages)] == [(2, 1), (15, 26)]
    edges = model.messages(plan)
    assert [model.message_ns(plan, m) for m in edges] == [3]
    memory = model.stage_memory(plan, 1, edges)
    assert (memory.held, memory.per_micro_batch) == (3 * 3 + 2 * 3, 3 + 15)
