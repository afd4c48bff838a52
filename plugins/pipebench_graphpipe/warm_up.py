"""More in flight than 1F1B needs: a stage two micro-batches ahead of the next one hides its transfers."""

from msgspec.structs import replace

from pipebench.algorithms.in_flight import in_flight
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem


def runs_ahead(problem: Problem, plan: Plan, memory_bytes: int, hop: int = 2) -> Plan | None:
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
    model = CostModel(problem)
    messages = model.messages(plan)
    ruled = with_in_flight(problem, plan)
    for position, stage in enumerate(plan.stages):
        live = (stage.in_flight or ruled.stages[position].in_flight) // stage.micro_batch
        if model.stage_memory(plan, position, messages).peak(live) > memory_bytes:
            return False
    return True
