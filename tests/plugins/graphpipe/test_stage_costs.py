"""What the search thinks of every stage in its space is what the suite's cost model says of it."""

import random
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, Regime
from pipebench.domain.recomputation import Recompute
from pipebench_graphpipe.chain_dp import NO_LIMIT
from pipebench_graphpipe.compiler import Compiler
from pipebench_graphpipe.program import ProgramArrays, graph_arrays
from pipebench_graphpipe.series_parallel import decompose
from pipebench_graphpipe.stage_costs import stage_costs
from tests.algorithms.convexity import Convexity
from tests.builders import with_model_inputs
from tests.nightly import mostly_at_night
from tests.plugins.graphpipe.all_partitions import period_ns
from tests.plugins.graphpipe.instances import pinned, problem_on, random_series_parallel


def sets_of(program: ProgramArrays) -> Iterator[tuple[int, frozenset[int]]]:
    """Slot and operators of every stage, by running the program on Python sets."""
    start = program.group_start
    groups = [set(program.group_operators[a:b].tolist()) for a, b in pairwise(start)]
    for row, slot in enumerate(program.row_slot.tolist()):
        prelude = program.prelude[program.prelude_start[row] : program.prelude_start[row + 1]].tolist()
        steps = [(group, -1) for group in prelude[:-1]] + [(prelude[-1], int(program.row_end[row]))]
        steps += [
            (int(program.step_group[step]), int(program.step_end[step]))
            for step in range(program.first[row], program.last[row])
        ]
        stack: list[set[int]] = []
        for group, end in steps:
            if group < 0:
                stack.pop()
            else:
                stack.append(groups[group])
            if end >= 0:
                yield slot + end, frozenset().union(*stack)


def alone(problem: Problem, operators: frozenset[int], used: int, micro_batch: int, recompute: Recompute) -> Plan:
    """A plan in which one stage holds these operators and every other operator is a stage by itself."""
    names = [operator.name for operator in problem.profile.graph.operators]
    groups = [sorted(operators), *([o] for o in range(len(names)) if o not in operators)]
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(names[o] for o in group),
                devices=tuple(range(used)) if number == 0 else (used + number,),
                data_parallel=used if number == 0 else 1,
                micro_batch=micro_batch,
                recompute=recompute,
            )
            for number, group in enumerate(groups)
        )
    )


def with_shared_rate(problem: Problem, shared: float) -> Problem:
    """The problem on links of which each device has less for all its messages than for one."""
    levels = tuple(msgspec.structs.replace(lv, shared_bandwidth_bytes_s=shared) for lv in problem.cluster.levels)
    return msgspec.structs.replace(problem, cluster=msgspec.structs.replace(problem.cluster, levels=levels))


@pytest.mark.parametrize("recompute", ["none", "stage"])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("seed", mostly_at_night(range(6), range(2)))
def test_every_stage_in_the_space_costs_what_the_model_says(
    seed: int, precision: str, recompute: Recompute
) -> None:
    rng = random.Random(seed)
    problem = problem_on(rng, 9, random_series_parallel(rng, 9), 4, 10**6)
    profile = msgspec.structs.replace(problem.profile, precision=precision)
    regime = Regime(mode="sync", precision=precision, optimizer="adam", optimizer_sharding="zero1")  # type: ignore[arg-type]
    problem = msgspec.structs.replace(pinned(problem, recompute=recompute), profile=profile, regime=regime)
    problem = with_model_inputs(with_shared_rate(problem, 0.7e9), {"ids": ((0, 3, 8), 5), "mask": ((4,), 3)})
    graph, model = problem.profile.graph, CostModel(problem)
    compiler = Compiler(graph, model.times.costs.operators, memo=True)
    compiler.chain(decompose(graph.successors).tree)
    program, slots, replicas = compiler.program.arrays(), compiler.program.slots, (1, 2, 4)
    sizes = [(1, (1,)), (4, replicas), (8, (2, 4))]
    made = list(stage_costs(model, program, slots, graph_arrays(graph), sizes, recompute=recompute == "stage"))
    assert [(costs.micro_batch, costs.replicas) for costs in made] == sizes
    convexity = Convexity(graph.successors)
    measured = set()
    for slot, operators in sets_of(program):
        assert slot not in measured
        measured.add(slot)
        assert convexity.is_convex(sorted(operators))
        for costs in made:
            for choice, used in enumerate(costs.replicas):
                plan = alone(problem, operators, used, costs.micro_batch, recompute)
                assert costs.period_ns[slot, choice] == period_ns(problem, model, plan, 0)
                memory = model.stage_memory(plan, 0, model.messages(plan))
                for live in range(1, min(3, costs.micro_batches + 1)):
                    assert costs.bytes_at(slot, choice, live) == memory.peak(live)
    assert measured == set(range(slots))


@pytest.mark.parametrize("seed", range(4))
def test_what_is_gathered_is_counted_wherever_weights_are_shared_out(seed: int) -> None:
    """At least what the model says: one replica gathers nothing; the most workspace counts with any weights."""
    rng = random.Random(seed)
    problem = problem_on(rng, 9, random_series_parallel(rng, 9), 4, 10**6)
    regime = Regime(mode="sync", optimizer="adam", optimizer_sharding="zero3")
    problem = msgspec.structs.replace(problem, regime=regime)
    graph, model = problem.profile.graph, CostModel(problem)
    compiler = Compiler(graph, model.times.costs.operators, memo=True)
    compiler.chain(decompose(graph.successors).tree)
    program, slots = compiler.program.arrays(), compiler.program.slots
    (costs,) = stage_costs(model, program, slots, graph_arrays(graph), [(4, (1, 2, 4))])
    most = 3 * max(graph.weight_bytes) + max(each.workspace_bytes for each in problem.profile.costs[0].operators)
    for slot, operators in sets_of(program):
        for choice, used in enumerate(costs.replicas):
            plan = alone(problem, operators, used, 4, "none")
            peak = model.stage_memory(plan, 0, model.messages(plan)).peak(1)
            assert peak <= costs.bytes_at(slot, choice, 1) <= peak + most
            if used > 1:
                assert costs.bytes_at(slot, choice, 1) - peak <= most - 3 * max(graph.weight_bytes)


def test_most_live_is_where_memory_ends() -> None:
    rng = random.Random(3)
    problem = problem_on(rng, 7, random_series_parallel(rng, 7), 4, 10**6)
    graph, model = problem.profile.graph, CostModel(problem)
    compiler = Compiler(graph, model.times.costs.operators, memo=True)
    compiler.chain(decompose(graph.successors).tree)
    program = compiler.program.arrays()
    (costs,) = stage_costs(model, program, compiler.program.slots, graph_arrays(graph), [(1, (1,))])
    for memory in (30, 60, 120, 240):
        for slot, most in enumerate(costs.most_live(memory)[:, 0].tolist()):
            fitting = [live for live in range(1, 9) if costs.bytes_at(slot, 0, live) <= memory]
            # Eight micro-batches are the whole mini-batch: a stage that holds them may be as deep as it likes.
            assert most == (NO_LIMIT if 8 in fitting else max(fitting, default=0))
    for slot in range(compiler.program.slots):
        memory = costs.bytes_at(slot, 0, 8)
        assert costs.most_live(memory)[slot, 0] == NO_LIMIT
        assert costs.most_live(memory - 1)[slot, 0] < 8
