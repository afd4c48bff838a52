"""Schedules of devices that run one stage each: GPipe, 1F1B and kFkB."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from pipebench.algorithms.in_flight import in_flight
from pipebench.algorithms.micro_batches import MOST_STEPS
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_in_turn
from pipebench.domain.errors import InvalidValue, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, BACKWARD, FORWARD, FiniteSchedule, Lane
from pipebench.hooks.context import Context
from pipebench_schedules.refusals import MORE_IN_FLIGHT, allowed, declares


def refuse_others(problem: Problem, plan: Plan, scheduler: str) -> None:
    """Refuse plans that these orders are not for.

    Raises UnsupportedProblem when stages share devices (this scheduler has no order for them) or there are
    more micro-batches than can be listed, InvalidValue when a micro-batch does not divide the mini-batch of one
    copy of the pipeline.
    """
    _, lanes_of = lanes_in_turn(plan)
    for position, lanes in enumerate(lanes_of):
        if lanes_of.index(lanes) < position:
            raise UnsupportedProblem(
                f"{scheduler} has no order for stages on the same devices: stages {lanes_of.index(lanes)} and "
                f"{position} share {list(plan.stages[position].devices)}",
                "use a periodic schedule that the planner makes, or a plan with devices for each stage",
            )
    listed = 0
    for position, stage in enumerate(plan.stages):
        count, left = divmod(problem.mini_batch, stage.micro_batch * plan.all_pipelines)
        if left:
            raise InvalidValue(
                f"stage {position}: micro-batches of {stage.micro_batch} samples on {plan.all_pipelines} "
                f"pipelines do not divide a mini-batch of {problem.mini_batch}"
            )
        listed += count
    if listed > MOST_STEPS:
        raise UnsupportedProblem(
            f"{scheduler} orders at most {MOST_STEPS} stages x micro-batches, this plan has {listed}",
            "use larger micro-batches or a smaller mini-batch",
        )


Runs = Iterable[tuple[str, Sequence[int]]]
"""Runs of one kind: the kind and the micro-batches, as one worker numbers them."""


def lanes(problem: Problem, plan: Plan, runs_of: Callable[[int, int], Runs]) -> FiniteSchedule:
    """The lanes of all stages: these runs, then the all-reduce.

    runs_of(position, count): the runs of a stage, or of one of its replicas in turn, that has `count`
    micro-batches. Replica j of r numbers them 0, 1, …; they are j, j + r, … of the stage (PipeDream's 1F1B-RR).
    There is an all-reduce in sync where the update takes time (async spreads it over the backwards).
    """
    model = CostModel(problem)
    made: list[Lane] = []
    for position, stage in enumerate(plan.stages):
        whole = problem.mini_batch // plan.all_pipelines // stage.micro_batch
        reduces = model.needs_update_task(stage, plan)
        for turn, devices in enumerate(stage.device_sets):
            runs = list(runs_of(position, len(range(turn, whole, stage.turns))))
            kinds = "".join(kind * len(numbers) for kind, numbers in runs)
            micro_batch = tuple(turn + stage.turns * number for _, numbers in runs for number in numbers)
            if reduces:
                kinds += ALL_REDUCE
                micro_batch += (turn,)
            if kinds:
                where = (position,) * len(kinds)
                made.append(Lane(devices=devices, stage=where, micro_batch=micro_batch, kinds=kinds))
    return FiniteSchedule(lanes=tuple(made))


def warm_ups(problem: Problem, plan: Plan, k: Sequence[int], hop: int) -> list[int]:
    """Forwards of each stage before its first backward: what it keeps in flight, in its own micro-batches.

    stage.in_flight samples where the plan says so, else by the in-flight rule over data and order edges. Each of r
    replicas in turn keeps the r-th part of that, rounded up.
    Raises InvalidValue when the edges have a cycle.
    """
    kept = in_flight(
        [stage.micro_batch for stage in plan.stages],
        k,
        stage_edges(problem.profile.graph, plan),
        problem.mini_batch // plan.all_pipelines,
        hop=hop,
        turns=[stage.turns for stage in plan.stages],
    )
    return [
        stage.in_flight // stage.micro_batch or -(-samples // (stage.micro_batch * stage.turns))
        for stage, samples in zip(plan.stages, kept, strict=True)
    ]


def alternate(count: int, warm_up: int, k: int) -> Iterator[tuple[str, range]]:
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

    Raises UnsupportedProblem when stages share devices or declare fewer in flight, InvalidValue when micro-batches
    do not divide.
    """
    del context
    refuse_others(problem, plan, "gpipe")
    made = lanes(problem, plan, lambda _, count: [(FORWARD, range(count)), (BACKWARD, range(count - 1, -1, -1))])
    return allowed(problem, plan, made, "gpipe", MORE_IN_FLIGHT) if declares(plan) else made


def schedule_1f1b(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Warm-up forwards, then k backwards and k forwards in turn, then the backwards that are left.

    A stage warms up with as many forwards as it keeps in flight: stage.in_flight samples where the plan says
    so, else by the in-flight rule over data and order edges (algorithms.in_flight, with the option's warm-up).

    Raises UnsupportedProblem when stages share devices, or what they declare in flight lets none of them go on;
    InvalidValue when micro-batches do not divide or the edges have a cycle.
    """
    refuse_others(problem, plan, "1f1b")
    warm = warm_ups(problem, plan, [stage.k for stage in plan.stages], int(context.options.warmup))
    made = lanes(problem, plan, lambda position, count: alternate(count, warm[position], plan.stages[position].k))
    return allowed(problem, plan, made, "1f1b", MORE_IN_FLIGHT) if declares(plan) else made


def schedule_kfkb(problem: Problem, plan: Plan, context: Context) -> FiniteSchedule:
    """Warm-up, then k backwards and k forwards in turn, each stage at its own micro-batch size and k.

    k: that of the stages, or the option's where it is not 0. What a stage keeps in flight is stage.in_flight
    where the plan says so, else by the in-flight rule with the option's warm-up (GraphPipe section 4.3, figure 5;
    the table of appendix A.1 is not public, the rule is reconstructed: algorithms.in_flight).

    Raises UnsupportedProblem when stages share devices, or what they keep in flight lets none of them go on: the
    message names the cycle of waits; InvalidValue when micro-batches do not divide or the edges have a cycle.
    """
    refuse_others(problem, plan, "kfkb")
    k = [context.options.k or stage.k for stage in plan.stages]
    warm = warm_ups(problem, plan, k, int(context.options.warmup))
    made = lanes(problem, plan, lambda position, count: alternate(count, warm[position], k[position]))
    context.count("tasks", sum(len(each.kinds) for each in made.lanes))
    return allowed(problem, plan, made, "kfkb", MORE_IN_FLIGHT)
