"""Periods of a pattern laid end to end: the steady state while one mini-batch passes."""

from collections import Counter
from itertools import pairwise

from msgspec.structs import replace

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.report.gantt.laps import laps_of
from tests.builders import chain_problem, cluster, stages_plan
from tests.plugins.running import services


def pipeline(mini_batch: int, replicas: int = 1) -> tuple[Problem, Plan, PeriodicSchedule]:
    """Three stages of unequal length; the last one may have replicas that take micro-batches in turn."""
    on = cluster(2 + replicas)
    problem = chain_problem(
        [10, 12, 14], [20, 25, 29], on, activations=[0, 5, 5, 0], mode="async", mini_batch=mini_batch
    )
    plan = stages_plan([[0], [1], [2]])
    last = replace(
        plan.stages[2],
        devices=tuple(range(2, 2 + replicas)),
        data_parallel=replicas,
        replicas="round_robin" if replicas > 1 else "split",
    )
    plan = replace(plan, stages=(*plan.stages[:2], last), placement="listed")
    schedule = services().schedule("1f1b-rr", problem, plan)
    assert isinstance(schedule, PeriodicSchedule)
    return problem, plan, schedule


def test_a_mini_batch_takes_a_period_for_each_micro_batch_and_every_stage_is_as_busy_in_each() -> None:
    problem, plan, schedule = pipeline(mini_batch=6)
    drawn = laps_of(problem, plan, schedule)
    assert drawn.until_ns == 6 * schedule.period_ns
    model = CostModel(problem)
    for row, stage in zip(drawn.rows, plan.stages, strict=True):
        times = model.stage_times(stage, plan)
        busy = sum(bar.end_ns - bar.start_ns for bar in row.bars)
        assert busy == 6 * (times.forward + times.backward)


def test_no_two_tasks_of_a_device_overlap_and_replicas_take_turns() -> None:
    problem, plan, schedule = pipeline(mini_batch=7, replicas=3)
    drawn = laps_of(problem, plan, schedule)
    assert [row.label for row in drawn.rows] == ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4"]
    for row in drawn.rows:
        assert all(one.end_ns <= two.start_ns for one, two in zip(row.bars, row.bars[1:], strict=False))
        assert all(0 <= bar.start_ns < bar.end_ns <= drawn.until_ns for bar in row.bars)
    turns = [{bar.micro_batch % 3 for bar in row.bars} for row in drawn.rows[2:]]
    assert [len(each) for each in turns] == [1, 1, 1]
    assert set.union(*turns) == {0, 1, 2}


def test_a_task_starts_a_period_after_that_of_the_micro_batch_before() -> None:
    problem, plan, schedule = pipeline(mini_batch=6)
    bars = [bar for row in laps_of(problem, plan, schedule).rows for bar in row.bars if bar.start_ns > 0]
    starts = {(bar.kind, bar.stage, bar.micro_batch): bar.start_ns for bar in bars}
    followed = Counter(
        starts[kind, stage, number + 1] - start
        for (kind, stage, number), start in starts.items()
        if (kind, stage, number + 1) in starts
    )
    assert set(followed) == {schedule.period_ns}
    assert followed.total() >= 6 * 4


def test_a_micro_batch_goes_forward_through_the_stages_and_then_back() -> None:
    problem, plan, schedule = pipeline(mini_batch=12)
    bars = [bar for row in laps_of(problem, plan, schedule).rows for bar in row.bars]
    placed = {(bar.kind, bar.stage, bar.micro_batch): bar for bar in bars}
    way = [("F", 0), ("F", 1), ("F", 2), ("B", 2), ("B", 1), ("B", 0)]
    steps = [
        (placed[*one, number], placed[*two, number])
        for number in {bar.micro_batch for bar in bars}
        for one, two in pairwise(way)
        if (*one, number) in placed and (*two, number) in placed
    ]
    assert len(steps) >= 12
    assert all(one.end_ns <= two.start_ns for one, two in steps)
