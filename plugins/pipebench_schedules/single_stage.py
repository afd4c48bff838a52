"""Schedules of devices that run one stage each: GPipe, 1F1B and kFkB."""

from collections.abc import Iterator, Sequence

from pipebench.algorithms.in_flight import in_flight
from pipebench.algorithms.micro_batches import MOST_STEPS
from pipebench.check.schedule import deadlock, waiting_stages, waits
from pipebench.check.tasks import finite_tasks
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, BACKWARD, FORWARD, FiniteSchedule, Lane
from pipebench.hooks.context import Context


def micro_batch_counts(problem: Problem, plan: Plan, scheduler: str) -> list[int]:
    """Micro-batches of each stage in one mini-batch.

    Raises UnsupportedProblem when stages share devices (this scheduler has no order for them) or there are
    more micro-batches than can be listed, InvalidValue when a micro-batch does not divide the mini-batch of one
    copy of the pipeline.
    """
    _, lane_of = lanes_of(plan)
    for position, lane in enumerate(lane_of):
        if lane_of.index(lane) < position:
            raise UnsupportedProblem(
                f"{scheduler} has no order for stages on the same devices: stages {lane_of.index(lane)} and "
                f"{position} share {list(plan.stages[position].devices)}",
                "use a periodic schedule that the planner makes, or a plan with devices for each stage",
            )
    counts: list[int] = []
    for position, stage in enumerate(plan.stages):
        count, left = divmod(problem.mini_batch, stage.micro_batch * plan.all_pipelines)
        if left:
            raise InvalidValue(
                f"stage {position}: micro-batches of {stage.micro_batch} samples on {plan.all_pipelines} "
                f"pipelines do not divide a mini-batch of {problem.mini_batch}"
            )
        counts.append(count)
    if sum(counts) > MOST_STEPS:
        raise UnsupportedProblem(
            f"{scheduler} orders at most {MOST_STEPS} stages x micro-batches, this plan has {sum(counts)}",
            "use larger micro-batches or a smaller mini-batch",
        )
    return counts


def lane(problem: Problem, plan: Plan, position: int, tasks: Sequence[tuple[str, Sequence[int]]]) -> Lane:
    """The lane of a stage that runs these runs of (kind, micro-batches), then its all-reduce.

    There is one in sync where the update takes time (async spreads it over the backwards).
    """
    stage = plan.stages[position]
    kinds = "".join(kind * len(numbers) for kind, numbers in tasks)
    micro_batch = tuple(number for _, numbers in tasks for number in numbers)
    if CostModel(problem).needs_update_task(stage, plan):
        kinds += ALL_REDUCE
        micro_batch += (0,)
    return Lane(devices=stage.devices, stage=(position,) * len(kinds), micro_batch=micro_batch, kinds=kinds)


def warm_ups(problem: Problem, plan: Plan, k: Sequence[int], hop: int) -> list[int]:
    """Forwards of each stage before its first backward: what it keeps in flight, in its own micro-batches.

    stage.in_flight samples where the plan says so, else by the in-flight rule over data and order edges.
    Raises InvalidValue when the edges have a cycle.
    """
    kept = in_flight(
        [stage.micro_batch for stage in plan.stages],
        k,
        stage_edges(problem.profile.graph, plan),
        problem.mini_batch // plan.all_pipelines,
        hop=hop,
    )
    return [
        (stage.in_flight or samples) // stage.micro_batch for stage, samples in zip(plan.stages, kept, strict=True)
    ]


def turns(count: int, warm_up: int, k: int) -> Iterator[tuple[str, range]]:
    """Runs of forwards and backwards; never more backwards in a run than micro-batches are in flight.

    Backwards come before forwards as soon as the warm-up is over, k of each in turn. Source: GraphPipe section 4.3
    and appendix A.1 (greedy: a backward as early as possible).
    """
    warm_up = min(warm_up, count)
    yield "F", range(warm_up)
    forwards, backwards, step = warm_up, 0, min(k, warm_up)
    while forwards < count:
        ahead = min(step, count - forwards)
        yield "B", range(backwards, backwards + ahead)
        yield "F", range(forwards, forwards + ahead)
        backwards += ahead
        forwards += ahead
    yield "B", range(backwards, count)


def schedule_gpipe(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Forwards in order, backwards in the reverse order (GPipe, section 2.3 and Figure 2c), on any stage graph.

    Raises UnsupportedProblem when stages share devices, InvalidValue when micro-batches do not divide.
    """
    del context
    counts = micro_batch_counts(problem, plan, "gpipe")
    return FiniteSchedule(
        lanes=tuple(
            lane(problem, plan, position, [(FORWARD, range(count)), (BACKWARD, range(count - 1, -1, -1))])
            for position, count in enumerate(counts)
        )
    )


def schedule_1f1b(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Warm-up forwards, then k backwards and k forwards in turn, then the backwards that are left.

    A stage warms up with as many forwards as it keeps in flight: stage.in_flight samples where the plan says
    so, else by the in-flight rule over data and order edges (algorithms.in_flight, with the option's warm-up).

    Raises UnsupportedProblem when stages share devices; InvalidValue when micro-batches do not divide or the
    edges have a cycle.
    """
    counts = micro_batch_counts(problem, plan, "1f1b")
    warm = warm_ups(problem, plan, [stage.k for stage in plan.stages], int(context.options.warmup))
    return FiniteSchedule(
        lanes=tuple(
            lane(problem, plan, position, list(turns(counts[position], warm[position], stage.k)))
            for position, stage in enumerate(plan.stages)
        )
    )


def schedule_kfkb(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Warm-up, then k backwards and k forwards in turn, each stage at its own micro-batch size and k.

    k: that of the stages, or the option's where it is not 0. What a stage keeps in flight is stage.in_flight
    where the plan says so, else by the in-flight rule with the option's warm-up (GraphPipe section 4.3, figure 5;
    the table of appendix A.1 is not public, the rule is reconstructed: algorithms.in_flight).

    Raises UnsupportedProblem when stages share devices; InvalidValue when micro-batches do not divide, the edges
    have a cycle, or what stages keep in flight lets none of them go on: the message names the cycle of waits.
    """
    counts = micro_batch_counts(problem, plan, "kfkb")
    k = [context.options.k or stage.k for stage in plan.stages]
    warm = warm_ups(problem, plan, k, int(context.options.warmup))
    made = FiniteSchedule(
        lanes=tuple(
            lane(problem, plan, position, list(turns(counts[position], warm[position], k[position])))
            for position in range(len(plan.stages))
        )
    )
    tasks = finite_tasks(problem, plan, made)
    standstill = deadlock(tasks, waits(plan, tasks, waiting_stages(CostModel(problem), plan)))
    if standstill is not None:
        raise InvalidValue(
            f"kfkb: {standstill.message}", "raise in_flight of the stage that waits, or leave it 0 for the rule"
        )
    context.count("tasks", sum(len(each.kinds) for each in made.lanes))
    return made
