"""The time of a step alone, again and again under other costs or orders: no trace, no memory."""

from dataclasses import dataclass, replace

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.costs.tasks import tasks_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule, Schedule
from pipebench.simulation.deadlock import Standstill
from pipebench.simulation.kernel import run_loop
from pipebench.simulation.metrics import metrics
from pipebench.simulation.network import FlowTable, flow_table
from pipebench.simulation.simulate import refuse_joint_flush, simulate
from pipebench.simulation.stages import StageTable, samples_of_pipeline, stage_table
from pipebench.simulation.tasks import TaskTable, task_durations, task_table


@dataclass(frozen=True, slots=True)
class PricedPlan:
    """What the stages and messages of a plan take under one cost model, for many orders of its tasks."""

    stages: StageTable
    network: FlowTable

    @classmethod
    def of(cls, model: CostModel, plan: Plan) -> "PricedPlan":
        """Raises as `simulate` does."""
        stages = stage_table(model, plan, samples_of_pipeline(model, plan))
        return cls(stages, flow_table(model, plan, stages))

    def ns_of(self, schedule: FiniteSchedule) -> int:
        """The length of `simulate`'s trace of the plan under the schedule. Raises as it does."""
        return self.ns(task_table(tasks_of(schedule), self.stages))

    def ns(self, tasks: TaskTable) -> int:
        """The same of the schedule's tasks, priced by these stages."""
        instants = run_loop(self.stages, tasks, self.network)
        if instants.ended < len(tasks.lane):
            raise Standstill(self.stages, tasks, self.network, instants).error()
        return int(max((instants.start + tasks.duration).max(initial=0), instants.arrived.max(initial=0)))


@dataclass(frozen=True, slots=True)
class Length:
    """What `simulate`'s trace would be: its length in ns, and how many tasks and transfers it would have."""

    ns: int
    tasks: int
    transfers: int


def length_of(problem: Problem, plan: Plan, schedule: Schedule) -> Length:
    """The length of `simulate`'s trace; of a finite schedule without making it. Raises as `simulate` does."""
    if isinstance(schedule, PeriodicSchedule):
        trace = simulate(problem, plan, schedule)
        return Length(trace.total_ns, len(trace.kinds), len(trace.transfer_kinds))
    refuse_joint_flush(problem, plan)
    priced = PricedPlan.of(CostModel(problem), plan)
    tasks = task_table(tasks_of(schedule), priced.stages)
    sent = priced.network.count[priced.network.in_place == 0]
    return Length(priced.ns(tasks), len(tasks.lane), int(sent.sum()))


def mini_batch_s(problem: Problem, plan: Plan, schedule: Schedule) -> float:
    """The seconds that `metrics` says of `simulate`'s trace. Raises as `simulate` does."""
    if isinstance(schedule, PeriodicSchedule):
        return metrics(problem, plan, simulate(problem, plan, schedule)).seconds
    return length_of(problem, plan, schedule).ns / NS_PER_S


class StepTime:
    """A plan under a schedule with a flush. Problems may differ in what they cost, in nothing else."""

    def __init__(self, plan: Plan, schedule: FiniteSchedule) -> None:
        self._plan = plan
        self._columns = tasks_of(schedule)
        self._tasks: TaskTable | None = None

    def ns(self, problem: Problem, model: CostModel | None = None) -> int:
        """The length of `simulate`'s trace (simulation.simulate). Raises as it does.

        model: the problem's, for those who ask of many plans.
        """
        priced = PricedPlan.of(model or CostModel(problem), self._plan)
        if self._tasks is None:
            self._tasks = task_table(self._columns, priced.stages)
        return priced.ns(replace(self._tasks, duration=task_durations(self._columns, priced.stages)))
