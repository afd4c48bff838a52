"""The time of a step alone, again and again under other costs: no trace, no memory, no table made twice."""

from dataclasses import replace

from pipebench.costs.model import CostModel
from pipebench.costs.tasks import tasks_of
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule
from pipebench.simulation.deadlock import Standstill
from pipebench.simulation.kernel import run_loop
from pipebench.simulation.network import flow_table
from pipebench.simulation.stages import samples_of_pipeline, stage_table
from pipebench.simulation.tasks import TaskTable, task_durations, task_table


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
        model = model or CostModel(problem)
        stages = stage_table(model, self._plan, samples_of_pipeline(model, self._plan))
        if self._tasks is None:
            self._tasks = task_table(self._columns, stages)
        tasks = replace(self._tasks, duration=task_durations(self._columns, stages))
        network = flow_table(model, self._plan, stages)
        instants = run_loop(stages, tasks, network)
        if instants.ended < len(tasks.lane):
            raise Standstill(stages, tasks, network, instants).error()
        return int(max((instants.start + tasks.duration).max(initial=0), instants.arrived.max(initial=0)))
