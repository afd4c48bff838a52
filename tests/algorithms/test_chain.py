"""Every figure of the integer chain equals the cost model on the plan that it stands for."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.chain import build_chain
from pipebench.algorithms.chains.contiguous_plan import contiguous_plan
from pipebench.algorithms.chains.one_f_one_b_star import stage_chain
from pipebench.algorithms.graph_orders import CutRule, linearise
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Problem
from tests.algorithms.strategies import dags, partitions


@settings(max_examples=200)
@given(dags(), st.sampled_from(["layers", "operators"]), st.sampled_from(["none", "stage"]), st.data())
def test_stages_cuts_and_memory_equal_the_cost_model(
    problem: Problem, cuts: CutRule, recompute: str, data: st.DataObject
) -> None:
    model = CostModel(problem)
    layers = linearise(problem.profile.graph, cuts)
    chain = build_chain(model, layers, problem.mini_batch, recompute)  # type: ignore[arg-type]
    bounds = data.draw(partitions(len(layers), problem.cluster.size))
    plan = contiguous_plan(model, chain, bounds)
    edges = model.messages(plan)
    assert all(m.target == m.source + 1 for m in edges)

    seen = stage_chain(model, plan)
    assert seen.order == list(range(len(plan.stages)))
    assert (seen.forward + seen.backward).tolist() == chain.items(bounds).tolist()

    for stage in range(len(plan.stages)):
        memory = model.stage_memory(plan, stage, edges)
        assert chain.memory(bounds[stage], bounds[stage + 1]) == memory
        for live in (1, 2, 5):
            assert chain.most_live(bounds[stage], bounds[stage + 1], memory.peak(live)) >= live
            short = chain.most_live(bounds[stage], bounds[stage + 1], memory.peak(live) - 1)
            assert short < live
