"""1F1B* schedules: judged by two checkers, peak memory as the formula says, refusals."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.chains.chain import build_chain
from pipebench.algorithms.chains.contiguous import partition_at
from pipebench.algorithms.chains.contiguous_plan import contiguous_plan
from pipebench.algorithms.chains.one_f_one_b_star import groups, one_f_one_b_star, stage_chain
from pipebench.algorithms.graph_orders import CutRule, linearise
from pipebench.algorithms.planning import memory_limits
from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem, RegimeMode
from tests.algorithms.strategies import chains, dags, partitions
from tests.algorithms.unrolled import swept_peaks
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.nightly import examples


def with_memory(problem: Problem, memory: int) -> Problem:
    types = (msgspec.structs.replace(problem.cluster.types[0], memory_bytes=memory),)
    return msgspec.structs.replace(problem, cluster=msgspec.structs.replace(problem.cluster, types=types))


def accepted(problem: Problem, plan: Plan) -> int:
    """The period of the plan's 1F1B*, once both checkers have agreed with it and with its memory."""
    model = CostModel(problem)
    schedule = one_f_one_b_star(model, plan)
    assert all(shift >= 0 for shift in (*schedule.shift, *schedule.transfer_shift))
    assert check_plan(problem, plan).status == "valid"
    verdict = check_schedule(problem, plan, schedule)
    assert (verdict.status, verdict.witness) == ("valid", None)

    seen = stage_chain(model, plan)
    live = groups(seen.forward + seen.backward, schedule.period_ns)[::2]
    formula = [0] * len(plan.stages)
    for stage, count in zip(seen.order, live, strict=True):
        formula[stage] = model.stage_memory(plan, stage, seen.edges).peak(int(count))
    assert swept_peaks(problem, plan, schedule) == formula
    assert verdict.peak_bytes == {
        device: peak for stage, peak in zip(plan.stages, formula, strict=True) for device in stage.devices
    }
    return schedule.period_ns


@settings(max_examples=examples(80))
@given(dags(), st.sampled_from(["layers", "operators"]), st.integers(20, 500), st.data())
def test_schedules_of_cut_graphs_are_accepted(
    problem: Problem, cuts: CutRule, memory: int, data: st.DataObject
) -> None:
    problem = with_memory(problem, memory)
    model = CostModel(problem)
    chain = build_chain(model, linearise(problem.profile.graph, cuts), problem.mini_batch)
    bounds = data.draw(partitions(chain.length, problem.cluster.size))
    plan = contiguous_plan(model, chain, bounds)
    expected = partition_at(chain, bounds, memory)
    if expected is None:
        with pytest.raises(InfeasibleProblem):
            one_f_one_b_star(model, plan)
    else:
        assert accepted(problem, plan) == expected.period_ns


@settings(max_examples=80)
@given(chains(), st.data())
def test_with_ample_memory_the_longest_item_is_the_period(problem: Problem, data: st.DataObject) -> None:
    bounds = data.draw(partitions(len(problem.profile.graph.operators), problem.cluster.size))
    plan = stages_plan([list(range(first, end)) for first, end in pairwise(bounds)])
    ample = with_memory(problem, 10**9)
    seen = stage_chain(CostModel(ample), plan)
    assert accepted(ample, plan) == max(1, int((seen.forward + seen.backward).max()))


def diamond(order_edges: Sequence[tuple[int, int]]) -> tuple[Problem, Plan]:
    """0 sends to 1 and 2, both send to 3; one operator a stage."""
    problem = dag_problem(
        [2, 3, 4, 1],
        [2, 1, 5, 3],
        [(0, (1,), 2), (0, (2,), 9), (1, (3,), 7), (2, (3,), 1)],
        cluster(4),
        saved=[5, 3, 2, 1],
        mode="async",
    )
    return problem, stages_plan([[0], [1], [2], [3]], order_edges=order_edges)


@pytest.mark.parametrize("live", [1, 2, 3, 9])
def test_order_edges_make_a_chain_and_tensors_may_skip_stages(live: int) -> None:
    problem, plan = diamond([(1, 2)])
    memory = CostModel(problem).stage_memory(plan, 0, CostModel(problem).messages(plan)).peak(live)
    problem = with_memory(problem, memory)
    schedule = one_f_one_b_star(CostModel(problem), plan)
    assert check_schedule(problem, plan, schedule).status == "valid"
    assert swept_peaks(problem, plan, schedule)[0] <= memory
    # The tensors of 9 ns into stage 2 and of 7 ns into stage 3 set the length of their cuts.
    seen = stage_chain(CostModel(problem), plan)
    assert seen.forward.tolist() == [2, 2, 3, 9, 4, 7, 1]


def test_branches_without_an_order_are_refused() -> None:
    problem, plan = diamond([])
    with pytest.raises(UnsupportedProblem, match="nothing orders stages 1 and 2"):
        one_f_one_b_star(CostModel(problem), plan)


def chain(mode: RegimeMode = "async", memory: int = 10**6, **pins: float) -> Problem:
    return chain_problem(
        [2, 7, 8, 20],
        [1, 15, 11, 15],
        cluster(4, memory),
        activations=[1, 3, 15, 9, 0],
        weights=[1, 1, 2, 3],
        mode=mode,
        pins=Pins(**pins),  # type: ignore[arg-type]
    )


PLAN = stages_plan([[0, 1], [2], [3]])


def changed(plan: Plan, stage: int, **changes: object) -> Plan:
    stages = list(plan.stages)
    stages[stage] = msgspec.structs.replace(stages[stage], **changes)
    return msgspec.structs.replace(plan, stages=tuple(stages))


@pytest.mark.parametrize(
    ("problem", "plan", "reason"),
    [
        (chain("sync"), PLAN, "async regime only"),
        (chain(), changed(PLAN, 2, devices=(0,)), "shares"),
        (chain(), changed(PLAN, 2, micro_batch=2), "micro-batch size"),
        (chain(), changed(PLAN, 2, k=2), "k > 1"),
        (
            chain(),
            msgspec.structs.replace(stages_plan([[2], [0, 1], [3]]), routing="relay"),
            "relayed plan runs in the order listed",
        ),
    ],
)
def test_refusals(problem: Problem, plan: Plan, reason: str) -> None:
    with pytest.raises(UnsupportedProblem, match=reason):
        one_f_one_b_star(CostModel(problem), plan)


def test_stages_may_be_listed_in_any_order() -> None:
    assert accepted(chain(), stages_plan([[2], [3], [0, 1]])) == accepted(chain(), PLAN) == 35


def test_a_stage_that_cannot_fit_is_named_with_its_bytes() -> None:
    needed = 3 * 2 + 15 + 2 * (15 + 9)
    assert accepted(chain(memory=needed), PLAN) > 0
    with pytest.raises(InfeasibleProblem, match=f"stage 1 needs {needed} bytes") as error:
        one_f_one_b_star(CostModel(chain(memory=needed - 6)), PLAN)
    assert f"have {needed - 6} bytes: 6 bytes too many" in error.value.message
    assert error.value.hint


def test_in_flight_of_a_stage_is_kept() -> None:
    free = accepted(chain(), PLAN)
    capped = changed(PLAN, 0, in_flight=1)
    schedule = one_f_one_b_star(CostModel(chain()), capped)
    items = stage_chain(CostModel(chain()), PLAN)
    assert schedule.period_ns == int((items.forward + items.backward).sum()) > free


def test_the_reserve_is_kept_free_where_that_is_possible() -> None:
    model = CostModel(chain())
    needed = max(model.stage_memory(PLAN, s, model.messages(PLAN)).peak(1) for s in range(3))
    roomy = chain(memory=2 * needed, reserve=0.25)
    assert memory_limits(roomy) == (2 * needed - -(-needed // 2), 2 * needed)
    inside = one_f_one_b_star(CostModel(roomy), PLAN)
    assert check_schedule(roomy, PLAN, inside).fit == "fits"
    tight = chain(memory=needed, reserve=0.25)
    assert check_schedule(tight, PLAN, one_f_one_b_star(CostModel(tight), PLAN)).fit == "tight"
    assert memory_limits(chain(memory=77)) == (77,)


def test_replicated_stages_run_as_one() -> None:
    problem = msgspec.structs.replace(chain(), mini_batch=2)
    plan = stages_plan([[0, 1], [2, 3]], micro_batch=2, replicas=[2, 1])
    assert accepted(problem, plan) == max(25 + 4, 2 * 54)
