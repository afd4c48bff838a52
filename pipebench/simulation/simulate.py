"""The simulator: run a plan under a schedule on its devices and links."""

from pipebench.costs.formula import StageMemory
from pipebench.costs.model import CostModel
from pipebench.costs.tasks import tasks_of
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.simulation.deadlock import Standstill
from pipebench.simulation.kernel import run_loop
from pipebench.simulation.network import flow_table
from pipebench.simulation.periodic import simulate_periodic
from pipebench.simulation.stages import TaskTimes, samples_of_pipeline, stage_table
from pipebench.simulation.tasks import task_table
from pipebench.simulation.trace import build_trace


def simulate(problem: Problem, plan: Plan, schedule: Schedule, known: TaskTimes | None = None) -> Trace:
    """Run a schedule: lanes in their static order, each task as soon as its lane is free and its inputs are there.

    Tasks. F needs all messages that cover its samples. B needs its own F and all gradients that cover its samples.
    I sends the gradient on; W may run later. R follows the last backward of its stage and of the stages that hold
    the same operators in other pipelines; it starts when its lane reaches it. A pair of tasks (Lane.together)
    starts when its lane is free and the inputs of both are there; both end together. Order edges are messages that
    take no time.

    Messages. A message carries one tensor of one of the sender's micro-batches. It occupies its link
    (Cluster.link_mode) and, where it crosses a level with a shared bandwidth, the ports of the groups that it
    leaves and enters (costs.links.flows). It starts when all of them are free. Of several messages that can start,
    the one that was ready first starts first; ties go by message number (forward before backward, then by source,
    target and tensor, then by micro-batch). Empty messages and messages on one device set occupy nothing.

    Copies. One copy, with all of its pipelines, is simulated with its share of the mini-batch. Contention between
    the copies is left out. Traces name the devices of the first copy.

    A periodic schedule is unrolled (simulation.periodic).
    known: times of tasks that replace those of the cost model; in a periodic schedule the means.

    Raises Deadlock and InvalidSchedule.
    Raises InvalidValue for a plan whose micro-batches do not divide its share of the mini-batch, or whose stages
    share only some devices.
    Raises UnsupportedProblem for a periodic schedule of unequal micro-batches, in a sync regime, or of several
    pipelines.
    """
    refuse_joint_flush(problem, plan)
    model = CostModel(problem)
    if isinstance(schedule, PeriodicSchedule):
        return simulate_periodic(model, plan, schedule, stage_memories(model, plan), known)
    return _simulate_finite(model, plan, schedule, known)


def refuse_joint_flush(problem: Problem, plan: Plan) -> None:
    """Raise UnsupportedProblem where several pipelines reduce gradients together and there is no flush."""
    if problem.regime.mode == "async" and plan.pipelines > 1:
        raise UnsupportedProblem(
            f"gradients of {plan.pipelines} pipelines are reduced together at a flush, and the regime is async",
            "use --regime sync",
        )


def _simulate_finite(model: CostModel, plan: Plan, schedule: FiniteSchedule, known: TaskTimes | None) -> Trace:
    stages = stage_table(model, plan, samples_of_pipeline(model, plan), known)
    tasks = task_table(tasks_of(schedule), stages, known)
    network = flow_table(model, plan, stages)
    instants = run_loop(stages, tasks, network)
    if instants.ended < len(tasks.lane):
        raise Standstill(stages, tasks, network, instants).error()
    return build_trace(stages, tasks, network, instants, stage_memories(model, plan))


def stage_memories(model: CostModel, plan: Plan) -> list[StageMemory]:
    """Memory of one device of each stage."""
    edges = model.messages(plan)
    return [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
