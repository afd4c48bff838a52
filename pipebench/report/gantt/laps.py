"""The steady state of a periodic schedule as a timeline: as many periods as a mini-batch takes."""

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FORWARD, PeriodicSchedule
from pipebench.report.gantt.gantt import Bar, Gantt, GanttRow, device_label


def laps_of(problem: Problem, plan: Plan, schedule: PeriodicSchedule) -> Gantt:
    """The tasks that run while one mini-batch passes any place, with the durations of the cost model; no links.

    The micro-batches are numbered from the one whose pattern begins with the picture; those before it have
    negative numbers. What began earlier, or goes on later, is cut at the edge.
    """
    model = CostModel(problem)
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    periods = periods_of(problem, plan)
    until_ns = periods * schedule.period_ns
    lanes: dict[tuple[int, ...], list[Bar]] = {
        tuple(sorted(each)): [] for stage in plan.stages for each in stage.device_sets
    }
    for kind, stage, start_ns, shift in zip(
        schedule.kinds, schedule.stage, schedule.start_ns, schedule.shift, strict=True
    ):
        length_ns = times[stage].forward if kind == FORWARD else times[stage].backward
        earlier = (start_ns + length_ns) // schedule.period_ns
        for period in range(-earlier, periods):
            number = period - shift
            begin_ns = start_ns + period * schedule.period_ns
            bar = Bar(kind, stage, number, max(begin_ns, 0), min(begin_ns + length_ns, until_ns))
            if bar.end_ns > bar.start_ns:
                lanes[tuple(sorted(plan.stages[stage].devices_of(number)))].append(bar)
    rows = tuple(
        GanttRow(device_label(devices), tuple(sorted(bars, key=lambda bar: bar.start_ns)), devices=devices)
        for devices, bars in sorted(lanes.items())
    )
    return Gantt(title="", rows=rows, until_ns=until_ns)


def periods_of(problem: Problem, plan: Plan) -> int:
    """How many periods a mini-batch takes: one for each micro-batch of a pipeline."""
    return problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
