"""A measured run simulated again, with the time that each of its tasks took."""

from msgspec.structs import replace

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, FiniteSchedule, Lane, PeriodicSchedule, Schedule
from pipebench.domain.trace import Trace
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from pipebench.simulation.stages import TaskTimes

LONGEST_NS = 2**43
"""Two hours: sums of more would leave the integers that the simulator counts with."""


def task_times(trace: Trace, stages: int) -> TaskTimes:
    """The times of the tasks of a trace; means over the micro-batches are rounded half up.

    All-reduces are left out: they are traffic. So are tasks of other stages, and tasks that end before they begin.
    A task that occurs twice, or whose micro-batch is below 0, is in its mean only.
    stages: number of stages of the plan.
    """
    taken: dict[tuple[str, int], list[int]] = {}
    found: dict[tuple[str, int, int], list[int]] = {}
    columns = (trace.stage, trace.kinds, trace.micro_batch, trace.start_ns, trace.end_ns)
    for stage, kind, micro_batch, start, end in zip(*columns, strict=True):
        if kind != ALL_REDUCE and 0 <= stage < stages and 0 <= end - start <= LONGEST_NS:
            taken.setdefault((kind, stage), []).append(end - start)
            found.setdefault((kind, stage, micro_batch), []).append(end - start)
    return TaskTimes(
        mean={key: (2 * sum(times) + len(times)) // (2 * len(times)) for key, times in taken.items()},
        each={key: times[0] for key, times in found.items() if len(times) == 1 and key[2] >= 0},
    )


def replayed_s(problem: Problem, plan: Plan, schedule: Schedule, measured: Trace) -> float:
    """Seconds of a mini-batch, simulated with the measured time of each task in place of the profile's.

    What is then left of the error lies in messages, all-reduces and idle time, and not in the profile.
    A run without a flush is replayed from its first task to its last, in the order in which its lanes began their
    tasks; the measured seconds are scaled by the length of the replay over that of the run. So what disturbed one
    task counts on both sides.
    """
    times = task_times(measured, len(plan.stages))
    if not isinstance(schedule, PeriodicSchedule):
        return metrics(problem, plan, simulate(problem, plan, schedule, times)).seconds
    samples = sum(
        plan.stages[0].micro_batch
        for stage, kind in zip(measured.stage, measured.kinds, strict=True)
        if (stage, kind) == (0, "F")
    )
    whole = simulate(replace(problem, mini_batch=samples * plan.copies), plan, order_of(measured), times)
    return metrics(problem, plan, measured).seconds * whole.total_ns / max(1, measured.total_ns)


def order_of(trace: Trace) -> FiniteSchedule:
    """The tasks of each lane in the order in which they began."""
    lanes = []
    for number, devices in enumerate(trace.lanes):
        rows = sorted(
            (row for row, lane in enumerate(trace.lane) if lane == number),
            key=lambda row: (trace.start_ns[row], trace.end_ns[row]),
        )
        lanes.append(
            Lane(
                devices=devices,
                stage=tuple(trace.stage[row] for row in rows),
                micro_batch=tuple(trace.micro_batch[row] for row in rows),
                kinds="".join(trace.kinds[row] for row in rows),
            )
        )
    return FiniteSchedule(lanes=tuple(lanes))
