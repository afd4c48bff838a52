"""Memory over time: peaks of the known schedules, and one timeline worked out by hand."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan, Stage
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from tests.builders import chain_problem, cluster, stages_plan
from tests.simulation.random_plans import executable_schedules, planned_problems
from tests.simulation.schedules import gpipe_schedule, lanes, one_f_one_b_schedule

STAGES, COUNT, SAVED, WEIGHTS, TENSOR = 4, 16, 7, 10, 3


def expected(position: int, live: int) -> int:
    """2 W for weights and gradient, saved bytes of the live ones, forward and gradient buffers of each side."""
    sides = (position > 0) + (position < STAGES - 1)
    return 2 * WEIGHTS + live * SAVED + sides * 2 * TENSOR


@pytest.mark.parametrize("scheduler", ["1f1b", "gpipe", "1f1b+2"])
def test_peaks_of_a_chain(scheduler: str) -> None:
    problem = chain_problem(
        [3] * STAGES,
        [6] * STAGES,
        cluster(STAGES),
        activations=[0, *[TENSOR] * (STAGES - 1), 0],
        saved=[SAVED] * STAGES,
        weights=[WEIGHTS] * STAGES,
        mode="sync",
        mini_batch=COUNT,
    )
    plan = stages_plan([[stage] for stage in range(STAGES)])
    live = [COUNT if scheduler == "gpipe" else STAGES - stage for stage in range(STAGES)]
    if scheduler == "1f1b+2":
        live = [2 * (STAGES - stage) - 1 for stage in range(STAGES)]
    schedule = (
        gpipe_schedule(problem, plan)
        if scheduler == "gpipe"
        else one_f_one_b_schedule(problem, plan, "+2" if scheduler == "1f1b+2" else "+1")
    )
    trace = simulate(problem, plan, schedule)
    peaks = {stage: expected(stage, live[stage]) for stage in range(STAGES)}
    assert {timeline.device: timeline.peak_bytes for timeline in trace.memory} == peaks
    assert metrics(problem, plan, trace).peak_memory_bytes == peaks


def test_a_timeline_by_hand() -> None:
    """Two micro-batches on one device: F 0-2, B 2-6, F 6-8, B 8-12, with a workspace of 5 bytes."""
    problem = chain_problem([2], [4], cluster(1), saved=[7], weights=[10], mode="sync", mini_batch=2)
    (costs,) = problem.profile.costs
    replace = msgspec.structs.replace
    costs = replace(costs, operators=(replace(costs.operators[0], workspace_bytes=5),))
    problem = replace(problem, profile=replace(problem.profile, costs=(costs,)))
    plan = stages_plan([[0]])
    (timeline,) = simulate(problem, plan, lanes("F0 B0 F1 B1")).memory
    assert (timeline.time_ns, timeline.bytes) == ((0, 12), (32, 20))
    (timeline,) = simulate(problem, plan, lanes("F0 F1 B0 B1")).memory
    assert (timeline.time_ns, timeline.bytes) == ((0, 2, 8, 12), (32, 39, 32, 20))


def test_idle_before_between_and_after() -> None:
    """Stage 1 waits until 5, between 8 and 11 it holds one micro-batch and nothing runs."""
    problem = chain_problem(
        [2, 3], [4, 4], cluster(2), activations=[0, 3, 0], saved=[7, 7], mode="sync", mini_batch=2
    )
    plan = stages_plan([[0], [1]])
    trace = simulate(problem, plan, lanes("F0 F1 B0 B1", "F0 F1 B0 B1"))
    memory = {timeline.device: timeline for timeline in trace.memory}
    assert (memory[1].time_ns, memory[1].bytes) == ((0, 5, 8, 15, 19), (0, 13, 20, 13, 0))


def test_a_split_backward_keeps_its_micro_batch_until_w() -> None:
    problem = chain_problem([2], [4], cluster(1), saved=[7], mode="sync", mini_batch=2)
    plan = stages_plan([[0]])
    (timeline,) = simulate(problem, plan, lanes("F0 I0 F1 I1 W0 W1")).memory
    assert timeline.peak_bytes == 14


def test_replicas_hold_the_same_and_copies_have_devices_of_their_own() -> None:
    problem = chain_problem([2], [4], cluster(4), saved=[7], weights=[10], mode="sync", mini_batch=8)
    stage = Stage(operators=("op0",), devices=(0, 1), data_parallel=2, micro_batch=2)
    plan = Plan(stages=(stage,), copies=2)
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    assert [timeline.device for timeline in trace.memory] == [0, 1]
    assert metrics(problem, plan, trace).peak_memory_bytes == dict.fromkeys(range(4), 20 + 7)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_peaks_equal_a_count_over_the_order_of_each_lane(data: st.DataObject) -> None:
    problem, plan = data.draw(planned_problems())
    schedule = data.draw(executable_schedules(problem, plan))
    model = CostModel(problem)
    edges = model.messages(plan)
    memory = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
    trace = simulate(problem, plan, schedule)
    peaks = {timeline.device: timeline.peak_bytes for timeline in trace.memory}
    for lane in schedule.lanes:
        live = dict.fromkeys(lane.stage, 0)
        peak = 0
        for i, (kind, stage) in enumerate(zip(lane.kinds, lane.stage, strict=True)):
            live[stage] += kind == "F"
            workspace = 0 if kind == "R" else memory[stage].workspace
            if i in lane.together:
                workspace += memory[lane.stage[i + 1]].workspace
            elif i - 1 in lane.together:
                workspace += memory[lane.stage[i - 1]].workspace
            peak = max(peak, sum(memory[s].at(number) for s, number in live.items()) + workspace)
            live[stage] -= kind in "BW"
        assert {peaks[device] for device in lane.devices} == {peak}
