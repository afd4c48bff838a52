"""A simulation with the times of a trace in place of the cost model's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import FiniteSchedule, PeriodicSchedule
from pipebench.domain.trace import Trace
from pipebench.simulation.replay import order_of, replayed_s, task_times
from pipebench.simulation.simulate import simulate
from pipebench.simulation.stages import TaskTimes
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.random_plans import executable_schedules, planned_problems
from tests.simulation.schedules import one_f_one_b_schedule


@given(st.data())
def test_the_times_of_a_simulation_give_it_again(data: st.DataObject) -> None:
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan, with_pairs=False))
    trace = simulate(problem, plan, schedule)
    assert simulate(problem, plan, schedule, task_times(trace, len(plan.stages))) == trace


def two_stages() -> tuple[Problem, Plan]:
    problem = chain_problem([3, 3], [5, 5], cluster(4), weights=[40, 40], mode="sync", mini_batch=8)
    return problem, stages_plan([[0], [1]], micro_batch=2, replicas=[2, 2])


def test_slower_tasks_and_the_model_s_all_reduces() -> None:
    """(micro-batches + stages - 1) tasks each way, then a ring of 40 ns, whatever the trace says of rings."""
    problem, plan = two_stages()
    schedule = one_f_one_b_schedule(problem, plan)
    trace = simulate(problem, plan, schedule)
    slow = replace(
        trace, end_ns=tuple(3 * end - 2 * start for start, end in zip(trace.start_ns, trace.end_ns, strict=True))
    )
    known = task_times(slow, 2)
    assert known.mean == {("F", 0): 9, ("F", 1): 9, ("B", 0): 15, ("B", 1): 15}
    assert len(known.each) == 2 * 2 * 4
    assert set(known.each.values()) == {9, 15}
    assert simulate(problem, plan, schedule, known).total_ns == (4 + 1) * 3 * 8 + 40


def test_one_stage_alone_and_stages_that_are_not_there() -> None:
    problem, plan = two_stages()
    schedule = one_f_one_b_schedule(problem, plan)
    trace = simulate(problem, plan, schedule)
    assert task_times(trace, 1).mean == {("F", 0): 3, ("B", 0): 5}
    foreign = replace(trace, stage=(-1, *trace.stage[1:]), end_ns=tuple(-end for end in trace.end_ns))
    assert task_times(foreign, 2) == TaskTimes()
    assert task_times(replace(trace, end_ns=(2**60,) * len(trace.end_ns)), 2) == TaskTimes()
    faster = simulate(problem, plan, schedule, TaskTimes(mean={("B", 1): 1}))
    lasted = {
        (stage, kind): end - start
        for stage, kind, start, end in zip(faster.stage, faster.kinds, faster.start_ns, faster.end_ns, strict=True)
    }
    assert lasted == {(0, "F"): 3, (0, "B"): 5, (1, "F"): 3, (1, "B"): 1, (0, "R"): 40, (1, "R"): 40}


def test_means_are_rounded_half_up() -> None:
    problem, plan = two_stages()
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    first = next(n for n, kind in enumerate(trace.kinds) if (kind, trace.stage[n]) == ("F", 0))
    ends = list(trace.end_ns)
    ends[first] += 2  # 3, 3, 3 and 5
    assert task_times(replace(trace, end_ns=tuple(ends)), 2).mean["F", 0] == 4
    ends[first] -= 1
    assert task_times(replace(trace, end_ns=tuple(ends)), 2).mean["F", 0] == 3


@given(st.data())
def test_each_task_takes_its_own_time(data: st.DataObject) -> None:
    """Tasks of drawn lengths: a replay has them, and replaying the replay changes nothing."""
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan, with_pairs=False))
    trace = simulate(problem, plan, schedule)
    longer = data.draw(st.lists(st.integers(0, 50), min_size=len(trace.kinds), max_size=len(trace.kinds)))
    uneven = replace(
        trace, end_ns=tuple(end + more for end, more in zip(trace.end_ns, longer, strict=True)), origin="measured"
    )
    again = simulate(problem, plan, schedule, task_times(uneven, len(plan.stages)))
    if isinstance(schedule, FiniteSchedule):
        assert lengths(again) == lengths(uneven)
    assert simulate(problem, plan, schedule, task_times(again, len(plan.stages))) == again


def lengths(trace: Trace) -> dict[tuple[str, int, int], int]:
    """ns of each task but all-reduces."""
    columns = (trace.kinds, trace.stage, trace.micro_batch, trace.start_ns, trace.end_ns)
    return {(k, s, m): end - start for k, s, m, start, end in zip(*columns, strict=True) if k != "R"}


def test_a_task_that_occurs_twice_is_in_the_mean_only() -> None:
    problem, plan = two_stages()
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    first, second = [n for n, kind in enumerate(trace.kinds) if (kind, trace.stage[n]) == ("F", 0)][:2]
    numbers = list(trace.micro_batch)
    numbers[second] = numbers[first]
    doubled = task_times(replace(trace, micro_batch=tuple(numbers)), 2)
    assert ("F", 0, numbers[first]) not in doubled.each
    assert doubled.mean["F", 0] == 3


@given(st.data())
def test_a_run_without_a_flush_is_replayed_whole(data: st.DataObject) -> None:
    """Two micro-batches of a mini-batch, of which some rounds were run: what the simulator makes of the rounds is
    replayed to the length that it has, and to twice that where every task takes twice as long.
    """
    size, rounds = data.draw(st.sampled_from([1, 2, 4])), data.draw(st.integers(1, 4))
    problem = chain_problem([3, 4], [5, 7], cluster(2), weights=[40, 40], mode="async", mini_batch=4)
    plan = stages_plan([[0], [1]], micro_batch=size)
    periodic = PeriodicSchedule(period_ns=100, stage=(0, 1, 1, 0), kinds="FFBB", start_ns=(0,) * 4, shift=(0,) * 4)
    many = replace(problem, mini_batch=4 * rounds)
    run = simulate(many, plan, one_f_one_b_schedule(many, plan))
    measured = replace(run, origin="measured", period_ns=100)
    assert order_of(run) == one_f_one_b_schedule(many, plan)
    assert replayed_s(problem, plan, periodic, measured) == pytest.approx(100e-9 * 4 / size)
    slower = replace(measured, total_ns=2 * run.total_ns)
    assert replayed_s(problem, plan, periodic, slower) == pytest.approx(50e-9 * 4 / size)
