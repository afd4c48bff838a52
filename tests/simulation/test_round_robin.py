"""Replicas that take micro-batches in turn: closed forms, and periodic patterns against a run of their rules."""

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.check import check_plan, check_schedule, check_trace
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import LinkLevel, LinkMode
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.hooks.context import Context
from pipebench.simulation.metrics import metrics
from pipebench.simulation.simulate import simulate
from pipebench_schedules import round_robin
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.simulation.schedules import one_f_one_b_schedule


def in_turn(plan: Plan) -> Plan:
    return replace(plan, stages=tuple(replace(stage, replicas="round_robin") for stage in plan.stages))


def pattern(problem: Problem, plan: Plan) -> PeriodicSchedule:
    return round_robin.schedule(problem, plan, Context(options=None))


def test_three_replicas_make_up_for_a_stage_that_takes_three_times_as_long() -> None:
    """Micro-batches of 3 ns on three replicas, then 1 ns on one: a micro-batch a ns each way, after the first."""
    problem = chain_problem([3, 1], [3, 1], cluster(4), mode="sync", mini_batch=12)
    plan = in_turn(stages_plan([[0], [1]], replicas=[3, 1]))
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    whole = 12 * 2 + 3 + 3  # the last stage is busy from the first forward to the last backward
    assert trace.total_ns == whole
    shared = stages_plan([[0], [1]], replicas=[3, 1], micro_batch=3)
    assert check_plan(problem, shared).status == "valid"


@pytest.mark.parametrize(("micro_batches", "busiest"), [(6, 2), (7, 3), (8, 3), (9, 3), (2, 1)])
def test_the_imbalance_is_real_where_replicas_do_not_divide_the_micro_batches(
    micro_batches: int, busiest: int
) -> None:
    problem = chain_problem([5], [7], cluster(3), mode="sync", mini_batch=micro_batches)
    plan = in_turn(stages_plan([[0]], replicas=[3]))
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    assert trace.total_ns == busiest * 12
    assert metrics(problem, plan, trace).bubble == pytest.approx(1 - micro_batches / (len(trace.lanes) * busiest))


def test_more_replicas_than_micro_batches_reduce_their_gradients_too() -> None:
    """One micro-batch of 10 ns on two replicas; 100 bytes over two devices take 100 ns."""
    problem = chain_problem([5], [5], cluster(2), weights=[100], mode="sync", mini_batch=1)
    plan = in_turn(stages_plan([[0]], replicas=[2]))
    assert simulate(problem, plan, one_f_one_b_schedule(problem, plan)).total_ns == 10 + 100


def test_gradients_are_reduced_behind_the_last_backward_of_all_replicas() -> None:
    """100 bytes over two devices take 100 ns; three micro-batches of 10 ns on two replicas."""
    problem = chain_problem([5], [5], cluster(2), weights=[100], mode="sync", mini_batch=3)
    plan = in_turn(stages_plan([[0]], replicas=[2]))
    trace = simulate(problem, plan, one_f_one_b_schedule(problem, plan))
    reduces = [
        (start, end)
        for kind, start, end in zip(trace.kinds, trace.start_ns, trace.end_ns, strict=True)
        if kind == "R"
    ]
    assert reduces == [(20, 120), (20, 120)]


def test_each_replica_keeps_its_own_micro_batches() -> None:
    problem = chain_problem([4, 1], [4, 1], cluster(5), saved=[7, 1], mode="sync", mini_batch=16)
    plan = in_turn(stages_plan([[0], [1]], replicas=[4, 1]))
    verdict = check_schedule(problem, plan, one_f_one_b_schedule(problem, plan))
    # Five in flight in all, so that the first replica has two.
    assert verdict.status == "valid"
    assert [verdict.peak_bytes[device] for device in range(4)] == [14] * 4


def slowest(problem: Problem, plan: Plan) -> Fraction:
    """The load of the busiest replica, in ns for each micro-batch."""
    model = CostModel(problem)
    return max(Fraction(model.stage_times(stage, plan).period, stage.turns) for stage in plan.stages)


figures = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4)), min_size=1, max_size=4)


@settings(max_examples=80, deadline=None)
@given(figures, st.integers(0, 6), st.sampled_from(["full", "half", "delay"]))
def test_a_pattern_of_replicas_in_turn_runs_at_the_pace_of_the_busiest(
    drawn: Sequence[tuple[int, int, int]], activation: int, mode: LinkMode
) -> None:
    """Transfers are shorter than any operation, so that a device is busiest."""
    replicas = [r for _, _, r in drawn]
    on = cluster(sum(replicas), link_mode=mode)
    problem = chain_problem(
        [f for f, _, _ in drawn], [b for _, b, _ in drawn], on, activations=[0] * (len(drawn) + 1), mini_batch=24
    )
    plan = in_turn(stages_plan([[i] for i in range(len(drawn))], replicas=replicas))
    made = pattern(problem, plan)
    assert check_schedule(problem, plan, made).status == "valid"
    assert made.period_ns == ceil(slowest(problem, plan))
    trace = simulate(problem, plan, made)
    assert trace.period_ns == ceil(slowest(problem, plan))
    assert check_trace(problem, plan, made, trace).status == "valid"


@st.composite
def planned(draw: st.DrawFn) -> tuple[Problem, Plan]:
    """Any graph of stages on nodes of two devices, so that links between replicas differ; all link modes."""
    size = draw(st.integers(1, 4))
    replicas = [draw(st.integers(1, 4)) for _ in range(size)]
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
    edges = sorted(draw(st.sets(st.sampled_from(pairs), max_size=4))) if pairs else []
    on = cluster(sum(replicas), link_mode=draw(st.sampled_from(["full", "half", "delay"])))
    if draw(st.booleans()):
        far = LinkLevel(
            name="net", group=64, bandwidth_bytes_s=0.4e9, latency_s=draw(st.sampled_from([0.0, 4e-9]))
        )
        on = replace(on, levels=(LinkLevel(name="node", group=2, bandwidth_bytes_s=2e9), far))
    times = st.lists(st.integers(1, 20), min_size=size, max_size=size)
    problem = dag_problem(
        draw(times), draw(times), [(i, (j,), draw(st.integers(0, 20))) for i, j in edges], on,
        weights=draw(times), saved=draw(times), mode="async", mini_batch=12,
    )  # fmt: skip
    modes = [draw(st.sampled_from(["split", "round_robin"])) for _ in range(size)]
    plan = stages_plan([[i] for i in range(size)], replicas=replicas, micro_batch=12)
    stages = [replace(stage, replicas=mode) for stage, mode in zip(plan.stages, modes, strict=True)]
    return problem, replace(plan, stages=tuple(stages))


def ends_by_rule(problem: Problem, plan: Plan, made: PeriodicSchedule, runs: int) -> list[int]:
    """When each micro-batch ends, each device and link in the order of the pattern, as soon as it can."""
    model = CostModel(problem)
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    sent: dict[tuple[str, int, int], list[int]] = {}
    for m in model.messages(plan):
        for kind, source, target in (("F", m.source, m.target), ("B", m.target, m.source)):
            sent.setdefault((kind, source, target), []).append(m.tensor)
    order = []
    for stage, kind, start, shift in zip(made.stage, made.kinds, made.start_ns, made.shift, strict=True):
        order += [(start + (shift + i) * made.period_ns, kind, (stage,), i) for i in range(runs)]
    moves = zip(
        made.source, made.target, made.transfer_kinds, made.transfer_start_ns, made.transfer_shift, strict=True
    )
    for source, target, kind, start, shift in moves:
        order += [(start + (shift + i) * made.period_ns, kind, (source, target), i) for i in range(runs)]
    order.sort(
        key=lambda each: (each[0], each[1] == "B", len(each[2]), each[2] if each[1] == "F" else each[2][::-1])
    )
    free: dict[object, int] = {}
    ended: dict[tuple[str, tuple[int, ...], int], int] = {}
    for _, kind, where, i in order:
        if len(where) == 2:
            ends = [plan.stages[s].device_sets[i % plan.stages[s].turns] for s in where]
            source, target = where if kind == "F" else where[::-1]
            messages = [m for m in model.messages(plan) if (m.source, m.target) == (source, target)]
            length = sum(model.message_ns(plan, m, kind == "B", i) for m in messages)
            mode = problem.cluster.link_mode
            link: object = tuple(ends) if mode == "full" else frozenset(ends)
            begin = ended[kind, where[:1], i]
            if mode != "delay":
                begin = max(begin, free.get(link, 0))
                free[link] = begin + length
            ended[kind, where, i] = begin + length
            continue
        stage = where[0]
        device = plan.stages[stage].device_sets[i % plan.stages[stage].turns]
        needed = [ended["F", where, i]] if kind == "B" else []
        for (of, source, target), _ in sent.items():
            if of == kind and target == stage:
                needed.append(ended.get((kind, (source, target), i), ended[kind, (source,), i]))
        begin = max([free.get(device, 0), *needed])
        length = times[stage].forward if kind == "F" else times[stage].backward
        free[device] = ended[kind, where, i] = begin + length
    return [max(end for (_, _, i), end in ended.items() if i == number) for number in range(runs)]


@settings(max_examples=60, deadline=None)
@given(planned())
def test_patterns_are_valid_and_run_at_the_exact_pace(drawn: tuple[Problem, Plan]) -> None:
    problem, plan = drawn
    plan = replace(plan, stages=tuple(replace(stage, micro_batch=4) for stage in plan.stages))
    made = pattern(problem, plan)
    verdict = check_schedule(problem, plan, made)
    assert verdict.status == "valid", verdict
    trace = simulate(problem, plan, made)
    assert check_trace(problem, plan, made, trace).status == "valid"
    assert trace.period_ns is not None
    assert trace.period_ns <= made.period_ns
    ends = ends_by_rule(problem, plan, made, max(trace.micro_batch) + 1)
    assert max(ends) == trace.total_ns
    cycle = lcm(*(stage.turns for stage in plan.stages))
    for length in (240, 960, 3840):  # a run settles in the end, some after many micro-batches
        runs = length // cycle * cycle
        long = ends_by_rule(problem, plan, made, runs)
        pace = Fraction(max(long) - max(long[: runs // 2]), runs - runs // 2)
        assert pace <= trace.period_ns
        if trace.period_ns - 1 <= pace * Fraction(51, 50):
            return
    raise AssertionError(f"a period of {trace.period_ns} ns, the run has a pace of {float(pace)}")


def test_memory_decides_the_period() -> None:
    """A replica of the first stage that may keep one micro-batch waits for it: 8 ns for each of two."""
    roomy = chain_problem([3, 1], [3, 1], cluster(3), activations=[10, 0, 0], mini_batch=8)
    plan = in_turn(stages_plan([[0], [1]], replicas=[2, 1]))
    assert pattern(roomy, plan).period_ns == 3
    tight = replace(roomy, cluster=cluster(3, memory=15))
    made = pattern(tight, plan)
    assert made.period_ns == 4
    assert check_schedule(tight, plan, made).status == "valid"
    assert check_schedule(tight, plan, pattern(roomy, plan)).status == "invalid"


def test_too_many_turns_are_refused_by_name() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(80), activations=[0, 4, 0], mode="sync", mini_batch=8)
    plan = in_turn(stages_plan([[0], [1]], replicas=[37, 41]))
    verdict = check_plan(problem, plan)
    assert verdict.status == "unknown"
    assert "1517 micro-batches" in verdict.reason
    with pytest.raises(UnsupportedProblem, match="1517 micro-batches"):
        simulate(problem, plan, one_f_one_b_schedule(problem, plan))


def test_sizes_of_stages_that_exchange_tensors_are_equal() -> None:
    problem = chain_problem([1, 1], [1, 1], cluster(3), mode="sync", mini_batch=8)
    plan = in_turn(stages_plan([[0], [1]], replicas=[2, 1]))
    mixed = replace(plan, stages=(plan.stages[0], replace(plan.stages[1], micro_batch=2)))
    verdict = check_plan(problem, mixed)
    assert verdict.witness is not None
    assert "the sizes must be equal" in verdict.witness.message


def test_a_stage_that_does_not_fit_is_named() -> None:
    problem = chain_problem([3, 1], [3, 1], cluster(3, memory=9), activations=[10, 0, 0], mini_batch=8)
    with pytest.raises(InfeasibleProblem, match=r"stage 0 needs 10 bytes .* 1 bytes too many"):
        pattern(problem, in_turn(stages_plan([[0], [1]], replicas=[2, 1])))


def test_the_bubble_counts_each_replica_in_its_turns() -> None:
    """Two replicas of 6 ns every 6 ns, and one stage of 2 ns every 3 ns."""
    problem = chain_problem([3, 1], [3, 1], cluster(3), mini_batch=8)
    plan = in_turn(stages_plan([[0], [1]], replicas=[2, 1]))
    trace = simulate(problem, plan, pattern(problem, plan))
    assert trace.period_ns == 3
    assert metrics(problem, plan, trace).bubble == pytest.approx(1 / 9)


def test_what_a_stage_declares_in_flight_is_that_of_one_replica() -> None:
    """At a period of 3 ns each of two replicas keeps two micro-batches, 0 to 12 ns every 6 ns."""
    problem = chain_problem([3, 1], [3, 1], cluster(3), mini_batch=8)
    plan = in_turn(stages_plan([[0], [1]], replicas=[2, 1]))
    made = pattern(problem, plan)
    for declared, status in ((2, "valid"), (1, "invalid")):
        stage = replace(plan.stages[0], in_flight=declared)
        said = replace(plan, stages=(stage, plan.stages[1]))
        assert check_schedule(problem, said, made).status == status


def test_the_slow_link_of_one_replica_sets_the_pace() -> None:
    """Replica 0 is beside the next stage, replica 1 in another node: 44 ns there and back for every second one."""
    far = LinkLevel(name="net", group=4, bandwidth_bytes_s=1e9)
    on = replace(
        cluster(4, link_mode="full"), levels=(LinkLevel(name="node", group=2, bandwidth_bytes_s=4e9), far)
    )
    problem = chain_problem([1, 1], [1, 1], on, activations=[0, 20, 0], mini_batch=8)
    first = Stage(
        operators=("op0",), devices=(2, 1), data_parallel=2, micro_batch=1, replicas="round_robin", in_flight=1
    )
    plan = Plan(stages=(first, Stage(operators=("op1",), devices=(3,), micro_batch=1)))
    made = pattern(problem, plan)
    trace = simulate(problem, plan, made)
    ends = ends_by_rule(problem, plan, made, 60)
    assert trace.period_ns == 22 == (ends[59] - ends[39]) // 20


def test_replicas_that_get_no_micro_batch_still_reduce() -> None:
    """Three replicas in turn of one micro-batch: 100 bytes over three devices take 4 steps of 100/3 ns."""
    problem = chain_problem([5], [7], cluster(3), weights=[100], mode="sync", mini_batch=1)
    plan = in_turn(stages_plan([[0]], replicas=[3]))
    made = one_f_one_b_schedule(problem, plan)
    assert check_schedule(problem, plan, made).status == "valid"
    assert simulate(problem, plan, made).total_ns == 5 + 7 + 133
