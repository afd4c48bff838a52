"""A problem in blocks costs what it costs operator by operator, and plans come back in operators."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.algorithms.chains.stage_row import plain
from pipebench.algorithms.coarse import BLOCK, CoarseProblem, coarsen, require_whole_operators
from pipebench.check import check_pins, check_plan
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.profile import Alternative
from pipebench.domain.recomputation import RecomputePin
from pipebench.testing.cases import layers
from tests.algorithms.strategies import dags
from tests.builders import chain_problem, cluster
from tests.plugins.rannc.strategies import problems


@st.composite
def coarse_plans(draw: st.DrawFn, problem: Problem, coarse: CoarseProblem) -> Plan:
    """Consecutive blocks on a device each, or on all of them; of a profiled micro-batch size."""
    graph = coarse.problem.profile.graph
    order = [graph.operators[op].name for op in graph.topological]
    most = min(len(order), problem.cluster.size)
    inner = (
        draw(st.sets(st.integers(1, len(order) - 1), max_size=most - 1)) if len(order) > 1 and most > 1 else set()
    )
    bounds = [0, *sorted(inner), len(order)]
    sizes = problem.profile.on(problem.cluster.devices[0]).micro_batches
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(order[first:end]),
                devices=(stage,),
                micro_batch=draw(st.sampled_from(sizes)),
                recompute=draw(st.sampled_from(["none", "stage"])),
            )
            for stage, (first, end) in enumerate(pairwise(bounds))
        )
    )


def with_more_sizes(problem: Problem) -> Problem:
    """Profiled at 1 and 3 samples; weight gradients measured apart, of every other operator."""
    (costs,) = problem.profile.costs
    operators = tuple(
        replace(
            each,
            forward_s=(each.forward_s[0], each.forward_s[0] * 2.5),
            backward_s=(each.backward_s[0], each.backward_s[0] * 2.1),
            weight_gradient_s=(each.backward_s[0] / 3, each.backward_s[0] / 2) if position % 2 else (),
        )
        for position, each in enumerate(costs.operators)
    )
    made = replace(costs, micro_batches=(1, 3), operators=operators)
    return replace(problem, profile=replace(problem.profile, costs=(made,)))


@given(data=st.data(), blocks=st.integers(1, 5))
@settings(max_examples=300, deadline=None)
def test_a_stage_of_blocks_costs_what_its_operators_cost(data: st.DataObject, blocks: int) -> None:
    problem = with_more_sizes(data.draw(st.one_of(problems(mini_batch=6), dags())))
    coarse = coarsen(problem, blocks)
    assert len(coarse.problem.profile.graph.operators) <= max(blocks, 1)
    plan = data.draw(coarse_plans(problem, coarse))
    real = coarse.expand(plan)
    held = sorted(name for stage in real.stages for name in stage.operators)
    assert held == sorted(operator.name for operator in problem.profile.graph.operators)
    small, large = CostModel(coarse.problem), CostModel(problem)
    edges = small.messages(plan), large.messages(real)
    for at, stage in enumerate(plan.stages):
        assert small.stage_times(stage, plan) == large.stage_times(real.stages[at], real)
        less, more = large.stage_memory(real, at, edges[1]), small.stage_memory(plan, at, edges[0])
        assert (less.held, less.workspace) == (more.held, more.workspace)
        saved = [each.saved_bytes_per_sample for each in problem.profile.costs[0].operators]
        if all(each.is_integer() for each in saved):
            assert less == more
        assert less.peak(1) <= more.peak(1)

    def named(model: CostModel, made: Plan, found: list) -> list:  # type: ignore[type-arg]
        tensors = model.graph.tensors
        return sorted(
            (
                m.source,
                m.target,
                tensors[m.tensor].name,
                *(model.message_ns(made, m, back) for back in (False, True)),
            )
            for m in found
        )

    assert named(small, plan, edges[0]) == named(large, real, edges[1])


@given(problem=problems(), blocks=st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_plans_of_whole_blocks_are_valid_operator_by_operator(problem: Problem, blocks: int) -> None:
    coarse = coarsen(problem, blocks)
    graph = coarse.problem.profile.graph
    if len(graph.operators) > problem.cluster.size or any(each.constant for each in graph.operators):
        return
    plan = Plan(
        stages=tuple(
            Stage(operators=(graph.operators[op].name,), devices=(stage,), micro_batch=1)
            for stage, op in enumerate(graph.topological)
        )
    )
    assert check_plan(coarse.problem, plan).status == "valid"
    assert check_plan(problem, coarse.expand(plan)).status == "valid"


def with_ways(*offered: tuple[tuple[str, int, bool], ...]) -> Problem:
    """A chain whose operators offer these alternatives (id, degree, recomputes)."""
    problem = chain_problem([10] * 4, [20] * 4, cluster(4), weights=[40] * 4, mode="sync", mini_batch=2)
    (costs,) = problem.profile.costs
    operators = tuple(
        replace(
            each,
            alternatives=tuple(
                Alternative(
                    id=name,
                    tensor_parallel=degree,
                    recompute=recompute,
                    forward_s=(6e-9,),
                    backward_s=(7e-9 + position * 1e-9,),
                    parameter_bytes=20,
                    saved_bytes_per_sample=3.0,
                    fixed_bytes=2,
                    transient_bytes_per_sample=float(position),
                    forward_collective_s=(2e-9,) if degree > 1 else (),
                    backward_collective_s=((1 + position) * 1e-9,) if degree > 1 else (),
                )
                for name, degree, recompute in ways
            ),
        )
        for position, (each, ways) in enumerate(zip(costs.operators, offered, strict=True))
    )
    return replace(problem, profile=replace(problem.profile, costs=(replace(costs, operators=operators),)))


def test_ways_that_all_operators_of_a_block_offer_are_joined() -> None:
    both = (("half", 2, False), ("again", 1, True))
    problem = with_ways(both, (("tp2", 2, False),), both, both)
    coarse = coarsen(problem, 2)
    first, second = coarse.problem.profile.costs[0].operators
    assert [(way.id, way.tensor_parallel, way.recompute) for way in first.alternatives] == [("tp2 0", 2, False)]
    assert [way.id for way in second.alternatives] == ["half", "again"]
    plan = Plan(
        stages=(
            Stage(
                operators=(first.operator, second.operator),
                devices=(0, 1),
                tensor_parallel=2,
                micro_batch=1,
                choice=("tp2 0", "half"),
            ),
        )
    )
    real = coarse.expand(plan)
    assert real.stages[0].operators == ("op0", "op1", "op2", "op3")
    assert real.stages[0].choice == ("half", "tp2", "half", "half")
    small, large = CostModel(coarse.problem), CostModel(problem)
    assert small.stage_times(plan.stages[0], plan) == large.stage_times(real.stages[0], real)
    assert small.stage_memory(plan, 0, []) == large.stage_memory(real, 0, [])
    assert small.collective_ns(plan.stages[0]) == large.collective_ns(real.stages[0]) == (8, 10)


def test_a_split_block_is_refused() -> None:
    problem = with_ways((), (), (), ())
    coarse = coarsen(problem, 2)
    name = coarse.problem.profile.graph.operators[0].name
    stage = Stage(operators=(name,), devices=(0, 1), tensor_parallel=2, micro_batch=1, sharding=({"batch": 2},))
    with pytest.raises(UnsupportedProblem, match="2 operators in one block cannot be"):
        coarse.expand(Plan(stages=(stage,)))
    with pytest.raises(UnsupportedProblem, match="mine splits operators; a block cannot be split"):
        require_whole_operators(coarse.problem, "mine")
    require_whole_operators(problem, "mine")


def test_a_graph_of_few_operators_stays_as_it_is() -> None:
    problem = with_ways((), (), (), ())
    coarse = coarsen(problem, 4)
    assert coarse.problem is problem
    plan = Plan(stages=(Stage(operators=("op0", "op1", "op2", "op3"), devices=(0,), micro_batch=1),))
    assert coarse.expand(plan) == plan
    with pytest.raises(UnsupportedProblem, match="0 blocks hold no operator"):
        coarsen(problem, 0)


def test_layers_and_names() -> None:
    problem = with_ways((), (), (), ())
    graph = problem.profile.graph
    layered = tuple(replace(op, layer=position // 2) for position, op in enumerate(graph.operators))
    problem = replace(problem, profile=replace(problem.profile, graph=replace(graph, operators=layered)))
    found = coarsen(problem, 3).problem.profile.graph.operators
    assert [(op.kind, op.layer) for op in found if op.kind == BLOCK] == [
        (BLOCK, op.layer) for op in found if op.kind == BLOCK
    ]
    assert [op.layer for op in found] == sorted(op.layer for op in found if op.layer is not None)


@pytest.mark.parametrize("pin", ["full", "selective"])
@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks_recompute_by_layer_beside_operators_of_no_layer(pin: RecomputePin, blocks: int) -> None:
    """The last operator is a head without ways: in a block with layers it runs plainly."""
    layered = layers("sync", Pins(recompute=pin))
    profile = layered.profile
    operators, costs = profile.graph.operators, profile.costs[0]
    head = replace(profile.graph, operators=(*operators[:-1], replace(operators[-1], layer=None)))
    lacking = replace(costs, operators=(*costs.operators[:-1], replace(costs.operators[-1], alternatives=())))
    problem = replace(layered, profile=replace(profile, graph=head, costs=(lacking,)))
    coarse = coarsen(problem, blocks)
    found = coarse.problem.profile.graph.operators
    assert len(found) == blocks
    chosen = plain(coarse.problem, pin)
    names = tuple(operator.name for operator in found)
    in_blocks = Stage(operators=names, devices=(0,), micro_batch=2, choice=chosen.choice)
    plan = Plan(stages=(in_blocks,))
    expanded = coarse.expand(plan)
    word = "recompute" if pin == "full" else "selective"
    by_name = dict(zip(expanded.stages[0].operators, expanded.stages[0].choice, strict=True))
    assert by_name == {f"op{op}": word if op < 5 else "" for op in range(6)}
    assert check_pins(problem, expanded).status == "valid"
    ours, theirs = CostModel(problem), CostModel(coarse.problem)
    assert ours.stage_times(expanded.stages[0]) == theirs.stage_times(in_blocks)
    assert ours.stage_memory(expanded, 0, []) == theirs.stage_memory(plan, 0, [])
