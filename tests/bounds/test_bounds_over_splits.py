"""Bounds over splits of operators against plans that split at random."""

from random import Random

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bounds import memory_bound, time_bound
from pipebench.check import check_plan, check_schedule
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.simulation.simulate import simulate
from tests.bounds.drawn_problems import problems
from tests.bounds.every_plan import length_ns, memory_bytes, plans
from tests.builders import cluster, dag_problem
from tests.check.orders import lane
from tests.nightly import examples


def splitting(problem: Problem) -> Problem:
    """The problem with two dims of 2 for each operator, which its tensor and weights span or not.

    Without groups of ranks that share out state: the cost model does not price plans that split beside them.
    """
    graph = problem.profile.graph
    operators = []
    for position, op in enumerate(graph.operators):
        made = [graph.tensors[tensor].name for tensor in graph.outputs[position]]
        axes = dict.fromkeys((*op.inputs, *made), ("batch", "n")) | dict.fromkeys(op.parameters, ("k", "n"))
        operators.append(msgspec.structs.replace(op, dims={"n": 2, "k": 2}, axes=axes))
    graph = msgspec.structs.replace(graph, operators=tuple(operators))
    costs = tuple(
        msgspec.structs.replace(
            each, operators=tuple(msgspec.structs.replace(op, alternatives=()) for op in each.operators)
        )
        for each in problem.profile.costs
    )
    return msgspec.structs.replace(
        problem,
        profile=msgspec.structs.replace(problem.profile, graph=graph, costs=costs),
        regime=msgspec.structs.replace(problem.regime, sharding_ranks=msgspec.UNSET),
    )


@settings(
    max_examples=examples(35),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(problems(), st.randoms(use_true_random=False))
def test_no_plan_with_splits_is_below_the_bounds_over_splits(problem: Problem, random: Random) -> None:
    try:
        time_bound(problem)
    except InfeasibleProblem:
        return
    problem = splitting(problem)
    time, memory = time_bound(problem, split=True), memory_bound(problem, split=True)
    assert time.ns <= time_bound(problem).ns
    assert "operator" not in memory.parts
    model, every = CostModel(problem), list(plans(problem))
    for plan in random.sample(every, min(20, len(every))):
        stages = []
        for stage in plan.stages:
            local = -(-stage.micro_batch // stage.data_parallel)
            cuts = [
                {"batch": a, "n": n, "k": k}
                for a in range(1, min(local, stage.tensor_parallel) + 1)
                for n in (1, 2)
                for k in (1, 2)
                if a * n * k <= stage.tensor_parallel
            ]
            sharding = tuple(random.choice(cuts) for _ in stage.operators)
            stages.append(msgspec.structs.replace(stage, sharding=sharding, choice=()))
        split = msgspec.structs.replace(plan, stages=tuple(stages))
        assert check_plan(problem, split).status == "valid"
        assert length_ns(model, split) >= time.ns, split
        assert memory_bytes(model, split) >= memory.value, split


def test_one_operator_cut_in_two_reaches_the_bound_over_splits() -> None:
    problem = splitting(dag_problem([100], [200], [], cluster(2)))
    stage = Stage(operators=("op0",), devices=(0, 1), tensor_parallel=2, micro_batch=1, sharding=({"n": 2},))
    assert time_bound(problem).ns == 300
    assert length_ns(CostModel(problem), Plan(stages=(stage,))) == 150 == time_bound(problem, split=True).ns


def test_pairs_of_a_split_operator_are_rounded_on_each_device() -> None:
    """8 ns on eight devices are 1 ns each; a pair hides 0.51 ns of 1, which is rounded to all of it."""
    problem = replace(splitting(dag_problem([8], [8], [], cluster(8), mini_batch=32)), overlap=0.51)
    graph = problem.profile.graph
    operators = (replace(graph.operators[0], dims={"n": 8}, axes={}),)
    problem = replace(problem, profile=replace(problem.profile, graph=replace(graph, operators=operators)))
    devices = tuple(range(8))
    stage = Stage(operators=("op0",), devices=devices, tensor_parallel=8, micro_batch=1, sharding=({"n": 8},))
    pairs = [f"F0.{i + 1} +B0.{i}" for i in range(31)]
    schedule = FiniteSchedule(lanes=(lane(devices, " ".join(["F0.0", *pairs, "B0.31"])),))
    plan = Plan(stages=(stage,))
    assert check_schedule(problem, plan, schedule).status == "valid"
    assert simulate(problem, plan, schedule).total_ns == 33
    assert time_bound(problem, split=True).ns <= 33
