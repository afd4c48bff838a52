"""From the stages of a search to a plan: order, devices, samples in flight, and warm-up beyond 1F1B."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from pipebench.algorithms.fitting import excess_bytes
from pipebench.algorithms.in_flight import in_flight
from pipebench.costs.messages import stage_edges
from pipebench.costs.placement import place
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import Recompute
from pipebench.domain.topology import topological_order
from pipebench_graphpipe.target_search import GraphPartition


def with_longer_warm_up(problem: Problem, plan: Plan, memory_bytes: int, hop: int = 2) -> Plan | None:
    """The plan with stages `hop` micro-batches ahead; None where that changes nothing or does not fit."""
    ahead = with_in_flight(problem, plan, hop)
    if ahead.stages == with_in_flight(problem, plan, 1).stages or not fits(problem, ahead, memory_bytes):
        return None
    return ahead


def with_in_flight(problem: Problem, plan: Plan, hop: int = 1) -> Plan:
    """The plan with the in-flight of the rule, whatever its stages said."""
    kept = in_flight(
        [stage.micro_batch for stage in plan.stages],
        [stage.k for stage in plan.stages],
        stage_edges(problem.profile.graph, plan),
        problem.mini_batch // plan.all_pipelines,
        hop=hop,
    )
    return replace(
        plan, stages=tuple(replace(stage, in_flight=s) for stage, s in zip(plan.stages, kept, strict=True))
    )


def fits(problem: Problem, plan: Plan, memory_bytes: int) -> bool:
    """Whether every stage holds what it keeps in flight (by the rule where it does not say)."""
    return excess_bytes(problem, plan, [memory_bytes] * len(plan.stages)) <= 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A stage without devices."""

    operators: Sequence[int]
    replicas: int
    micro_batch: int
    k: int = 1


def plan_of(problem: Problem, partition: GraphPartition, recompute: Recompute) -> Plan:
    """The plan of a partition at one micro-batch size, 1F1B."""
    costs = partition.costs
    drafts = [
        Draft(stage.operators, costs.replicas[stage.choice], costs.micro_batch) for stage in partition.stages
    ]
    return assemble_plan(problem, drafts, recompute)


def assemble_plan(problem: Problem, drafts: Sequence[Draft], recompute: Recompute) -> Plan:
    """The plan: stages in topological order on consecutive devices, each with the in-flight of its place.

    In-flight follows the edges between the stages, so it is never more than the search counted. It is less where
    stages stand in a line without an edge in the graph.
    """
    graph = problem.profile.graph
    place_of = {operator: at for at, operator in enumerate(graph.topological)}
    stages = []
    for found in drafts:
        operators = sorted(found.operators, key=place_of.__getitem__)
        used = found.replicas
        stages.append(
            Stage(
                operators=tuple(graph.operators[operator].name for operator in operators),
                devices=tuple(range(used)),
                data_parallel=used,
                micro_batch=found.micro_batch,
                k=found.k,
                recompute=recompute,
            )
        )
    stages.sort(key=lambda stage: place_of[graph.index[stage.operators[0]]])
    after: list[list[int]] = [[] for _ in stages]
    for before, successor in stage_edges(graph, Plan(stages=tuple(stages))):
        after[before].append(successor)
    order = topological_order(after, [f"stage {number}" for number in range(len(stages))])
    ordered = [stages[number] for number in order]
    devices = place([stage.data_parallel for stage in ordered], problem.cluster.size)
    placed = tuple(replace(stage, devices=ids) for stage, ids in zip(ordered, devices, strict=True))
    kept = in_flight(
        [stage.micro_batch for stage in placed],
        [stage.k for stage in placed],
        stage_edges(graph, Plan(stages=placed)),
        problem.mini_batch,
    )
    return Plan(stages=tuple(replace(stage, in_flight=s) for stage, s in zip(placed, kept, strict=True)))
