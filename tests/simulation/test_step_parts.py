"""The parts of a step: they add up, they are those of a plain-Python count, and scaling is what it says."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipebench.costs.messages import messages
from pipebench.costs.model import CostModel
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.framework import StepCosts
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import Alternative
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.simulation.simulate import simulate
from pipebench.simulation.step_parts import MILLION, PARTS, TASK_PARTS, Part, PartedStep
from tests.builders import chain_problem, cluster, stages_plan
from tests.nightly import examples
from tests.simulation.random_plans import executable_schedules, planned_problems
from tests.simulation.reference import Sent, Task, overlap, reference
from tests.simulation.schedules import gpipe_schedule


@st.composite
def with_parts(draw: st.DrawFn) -> tuple[Problem, Plan]:
    """Random plans whose stages have collectives, and whose update has an optimizer."""
    problem, plan = draw(planned_problems())
    (costs,) = problem.profile.costs
    collective = st.sampled_from([0.0, 0.25, 1.0])
    operators = tuple(
        msgspec.structs.replace(
            each,
            alternatives=(
                Alternative(
                    id="way",
                    forward_s=each.forward_s,
                    backward_s=each.backward_s,
                    parameter_bytes=6,
                    saved_bytes_per_sample=each.saved_bytes_per_sample,
                    forward_collective_s=(draw(collective) * each.forward_s[0],),
                    backward_collective_s=(draw(collective) * each.backward_s[0],),
                ),
            ),
        )
        for each in costs.operators
    )
    profile = msgspec.structs.replace(
        problem.profile, costs=(msgspec.structs.replace(costs, operators=operators),)
    )
    step = StepCosts(
        framework="one",
        optimizer_s_per_element=draw(st.sampled_from([0.0, 2e-9])),
        reduce_overlap=draw(st.sampled_from([0.0, 0.3, 1.0])),
    )
    regime = msgspec.structs.replace(
        problem.regime,
        step=draw(st.sampled_from([None, step])),
        optimizer_sharding=draw(st.sampled_from(["none", "zero3"])),
    )
    stages = []
    for _ in range(plan.pipeline_length):
        choice = ("way",) if draw(st.booleans()) else ()
        recompute = draw(st.sampled_from(["none", "stage"]))
        stages.append((choice, recompute))
    listed = tuple(
        msgspec.structs.replace(stage, choice=choice, recompute=recompute)
        for stage, (choice, recompute) in zip(plan.stages, stages * plan.pipelines, strict=True)
    )
    return (
        msgspec.structs.replace(problem, profile=profile, regime=regime),
        msgspec.structs.replace(plan, stages=listed),
    )


def waits(problem: Problem, plan: Plan, schedule: FiniteSchedule) -> list[int]:
    """For each lane the ns in which it waits for a message on its way, counted one gap after the other."""
    ran, sent = reference(problem, plan, schedule)
    counted = []
    for lane in schedule.lanes:
        free = total = 0
        tasks = list(zip(lane.kinds, lane.stage, lane.micro_batch, strict=True))
        for position, task in enumerate(tasks):
            if position - 1 in lane.together:
                continue
            start, end = ran[task]
            together = [task, tasks[position + 1]] if position in lane.together else [task]
            got = [each for one in together for each in arrivals(problem, plan, one, ran, sent)]
            flights = [arrived - made for made, arrived in got if arrived == start]
            if start > free and flights and max(arrived for _, arrived in got) == start:
                total += min(start - free, *flights)
            free = end
        counted.append(total)
    return counted


def arrivals(
    problem: Problem,
    plan: Plan,
    task: Task,
    ran: dict[Task, tuple[int, int]],
    sent: dict[Sent, tuple[int, int]],
) -> list[tuple[int, int]]:
    """When each message of a task was made, and when it arrived; order edges take no time."""
    kind, stage, number = task
    if kind not in "FBI":
        return []
    found = []
    size = plan.stages[stage].micro_batch
    edges = [(each.source, each.target, each.tensor) for each in messages(problem.profile.graph, plan)]
    for source, target, tensor in [*edges, *((*edge, -1) for edge in plan.order_edges)]:
        here, there = (target, source) if kind == "F" else (source, target)
        if here != stage:
            continue
        for i in overlap(number, size, plan.stages[there].micro_batch):
            made = next(
                ran[each] for each in ((k, there, i) for k in ("F" if kind == "F" else "BI")) if each in ran
            )
            arrived = made[1] if tensor < 0 else sent[source, target, tensor, kind != "F", i][1]
            found.append((made[1], arrived))
    return found


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_parts_add_up_to_the_simulated_step_on_every_device(data: st.DataObject) -> None:
    problem, plan = data.draw(with_parts())
    schedule = data.draw(executable_schedules(problem, plan))
    trace = simulate(problem, plan, schedule)
    step = PartedStep(problem, plan, schedule)
    assert step.total_ns == trace.total_ns
    assert [each.devices for each in step.devices] == list(trace.lanes)
    busy = [0] * len(trace.lanes)
    for lane, described in enumerate(schedule.lanes):
        ends = 0
        rows = [row for row, at in enumerate(trace.lane) if at == lane]
        for row in rows:
            busy[lane] += max(0, trace.end_ns[row] - max(ends, trace.start_ns[row]))
            ends = max(ends, trace.end_ns[row])
        assert len(rows) == len(described.kinds)
    for each, worked in zip(step.devices, busy, strict=True):
        assert tuple(each.ns) == PARTS
        assert min(each.ns.values()) >= 0
        assert sum(each.ns.values()) == trace.total_ns
        assert each.busy_ns == worked
    assert [each.ns["messages"] for each in step.devices] == waits(problem, plan, schedule)
    assert step.critical.busy_ns == max(busy)


def longer_than_its_work(model: CostModel, stage: Stage, plan: Plan) -> int:
    """What a forward and a backward take beyond what they take where replicas share out nothing."""
    regime = msgspec.structs.replace(model.problem.regime, optimizer_sharding="none")
    whole = CostModel(msgspec.structs.replace(model.problem, regime=regime))
    times, alone = (each.stage_times(stage, plan) for each in (model, whole))
    return times.forward + times.backward - alone.forward - alone.backward


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_tasks_have_the_parts_that_the_cost_model_says(data: st.DataObject) -> None:
    """Without pairs: collectives, reductions and the optimizer of each lane, added up task by task."""
    problem, plan = data.draw(with_parts())
    schedule = data.draw(executable_schedules(problem, plan, with_pairs=False))
    model = CostModel(problem)
    for lane, each in zip(schedule.lanes, PartedStep(problem, plan, schedule).devices, strict=True):
        passes = [plan.stages[stage] for stage, kind in zip(lane.stage, lane.kinds, strict=True) if kind == "F"]
        reduces = [plan.stages[stage] for stage, kind in zip(lane.stage, lane.kinds, strict=True) if kind == "R"]
        assert each.ns["tensor_parallel"] == sum(sum(model.collective_ns(stage)) for stage in passes)
        reduced = sum(model.exposed_reduce_ns(stage, plan) for stage in reduces)
        waited = sum(longer_than_its_work(model, stage, plan) for stage in passes)
        assert each.ns["gradients"] == reduced + waited
        updates = sum(model.stage_times(stage, plan).all_reduce for stage in reduces)
        assert each.ns["optimizer"] == updates - reduced


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from([*TASK_PARTS, "messages"]), st.integers(0, 10 * MILLION))
def test_a_scaled_part_alone_changes(data: st.DataObject, part: Part, factor: int) -> None:
    """A factor of one changes nothing; of a lane without waits its tasks' time follows from the factor."""
    problem, plan = data.draw(with_parts())
    schedule = data.draw(executable_schedules(problem, plan, with_pairs=False))
    step = PartedStep(problem, plan, schedule)
    assert step.scaled_ns({part: MILLION}) == step.total_ns
    scaled = step._run({part: factor})
    for lane, each in enumerate(step.devices):
        rows = scaled.tasks.lane == lane
        tasks = len(schedule.lanes[lane].kinds)
        expected = each.busy_ns + (each.ns[part] * (factor - MILLION) / MILLION if part in TASK_PARTS else 0)
        assert abs(int(scaled.tasks.duration[rows].sum()) - expected) <= tasks


def test_the_parts_of_two_stages() -> None:
    """Forward 10, backward 20 each; 4 ns of a stage's forward and 6 of its backward are collectives; a message
    takes 5. Two micro-batches: F0 F0 on the first, and each answer 5 + 10 + 20 + 5 later.
    """
    problem = chain_problem([10, 10], [20, 20], cluster(2), activations=[0, 5, 0], mode="sync", mini_batch=2)
    (costs,) = problem.profile.costs
    way = Alternative(
        id="tp2",
        forward_s=(10e-9,),
        backward_s=(20e-9,),
        parameter_bytes=0,
        saved_bytes_per_sample=0.0,
        forward_collective_s=(4e-9,),
        backward_collective_s=(6e-9,),
    )
    operators = tuple(msgspec.structs.replace(each, alternatives=(way,)) for each in costs.operators)
    profile = msgspec.structs.replace(
        problem.profile, costs=(msgspec.structs.replace(costs, operators=operators),)
    )
    problem = msgspec.structs.replace(problem, profile=profile)
    plan = stages_plan([[0], [1]])
    split = tuple(msgspec.structs.replace(stage, choice=("tp2",)) for stage in plan.stages)
    plan = msgspec.structs.replace(plan, stages=split)
    step = PartedStep(problem, plan, gpipe_schedule(problem, plan))
    # First lane: F 0-10, F 10-20, B 60-80 and 80-100; second: F 15-25, F 25-35, B 35-55, B 55-75.
    assert step.total_ns == 100
    first, second = step.devices
    tasks = {"kernels": 40, "tensor_parallel": 20, "gradients": 0, "optimizer": 0}
    assert first.ns == tasks | {"messages": 5, "bubble": 35}
    assert second.ns == tasks | {"messages": 5, "bubble": 35}
    assert step.critical is first
    assert step.scaled_ns({"tensor_parallel": 2 * MILLION}) == 130
    assert step.scaled_ns({"messages": 0}) == 90


def test_what_is_exchanged_is_of_the_pass_that_waits_for_it() -> None:
    """Two replicas share out 100 bytes: the forward gathers for 50 ns and works 10, the backward exchanges for 100
    and works 20. Without that each pass takes its work.
    """
    problem = chain_problem([10], [20], cluster(2), weights=[100], mode="sync", mini_batch=2)
    regime = msgspec.structs.replace(problem.regime, optimizer_sharding="zero3")
    problem = msgspec.structs.replace(problem, regime=regime)
    plan = stages_plan([[0]], micro_batch=2, replicas=[2])
    step = PartedStep(problem, plan, gpipe_schedule(problem, plan))
    assert step.total_ns == 150
    assert step.devices[0].ns["gradients"] == 120
    run = step._run({"gradients": 0})
    assert sorted(run.tasks.duration.tolist()) == [10, 20]


def test_a_plan_without_a_flush_has_no_step() -> None:
    problem = chain_problem([1], [1], cluster(1), mode="async")
    lane = Lane(devices=(0,), stage=(0, 0), micro_batch=(0, 0), kinds="FB")
    with pytest.raises(UnsupportedProblem, match="without a flush"):
        PartedStep(problem, stages_plan([[0]]), FiniteSchedule(lanes=(lane,)))
