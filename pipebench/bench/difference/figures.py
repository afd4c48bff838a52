"""What a plan costs on its problem, by the suite's own models."""

from pipebench.bench.score import judge
from pipebench.check import check_plan
from pipebench.costs.estimate import estimate
from pipebench.costs.model import CostModel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value
from pipebench.domain.verdict import Fit
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate

NS_PER_S = 1e9


class StageFigures(Value, frozen=True, kw_only=True):
    """One stage. forward_ns, backward_ns: of one micro-batch. Bytes on each of its devices: weights, all that is
    held whatever runs (weight versions, gradients, optimizer state, async buffers), and what each live
    micro-batch adds.
    """

    forward_ns: int
    backward_ns: int
    weight_bytes: int
    held_bytes: int
    micro_batch_bytes: int


class PlanFigures(Value, frozen=True, kw_only=True):
    """A plan on its problem, seconds for one mini-batch.

    status: of the check; trouble: what it found. simulated_s, peak_bytes (for each device id) and fit
    need a schedule.
    """

    status: str
    trouble: str = ""
    estimated_s: float | None = None
    simulated_s: float | None = None
    fit: Fit | None = None
    peak_bytes: dict[int, int] = {}
    stages: tuple[StageFigures, ...] = ()


def plan_figures(problem: Problem, plan: Plan, schedule: Schedule | None) -> PlanFigures:
    """The figures; an invalid plan has a status and a reason instead, one that is only too large has both."""
    verdict = check_plan(problem, plan)
    if verdict.status != "valid":
        return PlanFigures(
            status=verdict.status, trouble=verdict.witness.message if verdict.witness else verdict.reason
        )
    if schedule is not None:
        verdict = judge(problem, plan, schedule)
    trouble = verdict.witness.message if verdict.witness else verdict.reason
    simulated_s = None
    if schedule is not None:
        try:
            simulated_s = metrics(problem, plan, simulate(problem, plan, schedule)).seconds
        except PipebenchError as error:
            trouble = trouble or str(error)
    return PlanFigures(
        status=verdict.status,
        trouble=trouble,
        estimated_s=estimate(problem, plan) / NS_PER_S,
        simulated_s=simulated_s,
        fit=verdict.fit,
        peak_bytes=verdict.peak_bytes,
        stages=_stages(problem, plan),
    )


def weight_bytes(problem: Problem, operators: tuple[str, ...]) -> int:
    """Bytes of the parameters that the operators use, each once."""
    graph = problem.profile.graph
    names = {
        name
        for operator in operators
        if operator in graph.index
        for name in graph.operators[graph.index[operator]].parameters
    }
    return sum(graph.parameter_bytes[name] for name in names)


def _stages(problem: Problem, plan: Plan) -> tuple[StageFigures, ...]:
    model = CostModel(problem)
    edges = model.messages(plan)
    found = []
    for position, stage in enumerate(plan.stages):
        times, memory = model.stage_times(stage, plan), model.stage_memory(plan, position, edges)
        found.append(
            StageFigures(
                forward_ns=times.forward,
                backward_ns=times.backward,
                weight_bytes=model.parameter_bytes(stage),
                held_bytes=memory.held,
                micro_batch_bytes=memory.per_micro_batch,
            )
        )
    return tuple(found)
