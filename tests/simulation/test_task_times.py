"""A simulation with the times of a trace in place of the cost model's."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.simulation.simulate import simulate
from pipebench.simulation.stages import mean_task_times
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.random_plans import executable_schedules, planned_problems
from tests.simulation.schedules import one_f_one_b_schedule


@given(st.data())
def test_the_times_of_a_simulation_give_it_again(data: st.DataObject) -> None:
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan, with_pairs=False))
    trace = simulate(problem, plan, schedule)
    assert simulate(problem, plan, schedule, mean_task_times(trace, len(plan.stages))) == trace


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
    known = mean_task_times(slow, 2)
    assert known == {("F", 0): 9, ("F", 1): 9, ("B", 0): 15, ("B", 1): 15}
    assert simulate(problem, plan, schedule, known).total_ns == (4 + 1) * 3 * 8 + 40


def test_one_stage_alone_and_stages_that_are_not_there() -> None:
    problem, plan = two_stages()
    schedule = one_f_one_b_schedule(problem, plan)
    trace = simulate(problem, plan, schedule)
    assert mean_task_times(trace, 1) == {("F", 0): 3, ("B", 0): 5}
    foreign = replace(trace, stage=(-1, *trace.stage[1:]), end_ns=tuple(-end for end in trace.end_ns))
    assert mean_task_times(foreign, 2) == {}
    assert mean_task_times(replace(trace, end_ns=(2**60,) * len(trace.end_ns)), 2) == {}
    faster = simulate(problem, plan, schedule, {("B", 1): 1})
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
    assert mean_task_times(replace(trace, end_ns=tuple(ends)), 2)["F", 0] == 4
    ends[first] -= 1
    assert mean_task_times(replace(trace, end_ns=tuple(ends)), 2)["F", 0] == 3
