"""The suite's closed form: how long a mini-batch takes, without a schedule or a simulation."""

from collections.abc import Sequence
from fractions import Fraction

from pipebench.costs.formula import StageTimes
from pipebench.costs.links import Flow, flows
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_in_turn
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.topology import topological_order


def estimate(problem: Problem, plan: Plan, model: CostModel | None = None) -> int:
    """Nanoseconds for one mini-batch. model: the problem's, for those who ask of many plans.

    sync: (m - 1) times the longest period, plus the longest path of one micro-batch through the pipeline and
    back, plus the all-reduces of the lane where they take longest. The period of a lane is the forwards and
    backwards of its stages, each with one transfer to its slowest successor and back, which 1F1B with one
    micro-batch of warm-up a hop does not hide. Where micro-batches differ, a stage counts on the path as many
    of its own as make up the largest one before or behind it. On chains without contention whose backwards are
    a multiple of their forwards it was never below the simulation of 1F1B (tested, not proved); elsewhere it is
    an estimate. Forwards and backwards are taken to run one after the other (Problem.overlap is left out).

    async: the load of the busiest lane, link or port over a mini-batch; equal micro-batches: mini_batch /
    micro_batch times the load of one.

    Raises InvalidValue for stages that share only some devices, or edges with a cycle.
    """
    model = model or CostModel(problem)
    counts = [Fraction(problem.mini_batch, stage.micro_batch * plan.all_pipelines) for stage in plan.stages]
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    sent = flows(model, plan)
    if problem.regime.mode == "async":
        return _busiest(plan, counts, times, sent)
    hops = _hops(plan, sent)
    return _fill(plan, counts, times, hops) + _path(problem, plan, times, hops) + _reduce(plan, times)


def _reduce(plan: Plan, times: Sequence[StageTimes]) -> int:
    """The longest that one lane all-reduces, in ns: those of its stages one after the other."""
    sets, lanes_of = lanes_in_turn(plan)
    load = [0] * len(sets)
    for lanes, time in zip(lanes_of, times, strict=True):
        for lane in lanes:
            load[lane] += time.all_reduce
    return max(load)


def _busiest(plan: Plan, counts: Sequence[Fraction], times: Sequence[StageTimes], sent: Sequence[Flow]) -> int:
    """The largest load of a lane, link or port over a mini-batch, in ns."""
    _, lanes_of = lanes_in_turn(plan)
    load: dict[object, Fraction] = {}
    for lanes, count, time in zip(lanes_of, counts, times, strict=True):
        for lane in lanes:
            load[lane] = load.get(lane, Fraction(0)) + count * time.period / len(lanes)
    for flow in sent:
        count = counts[flow.sender] / flow.turns
        if flow.link is not None:
            key = ("link", flow.link)
            load[key] = load.get(key, Fraction(0)) + count * flow.duration_ns
        for port, occupied in flow.ports:
            load["port", port] = load.get(("port", port), Fraction(0)) + count * occupied
    return -int(-max(load.values()) // 1)


def _hops(plan: Plan, sent: Sequence[Flow]) -> dict[tuple[int, int], tuple[int, int]]:
    """For each pair of stages the ns that one micro-batch travels forward and back.

    Tensors between the same stages follow one another on their link; without links they travel together. Of
    replicas in turn, those between which it takes longest count.
    """
    in_turn: dict[tuple[int, int, int], tuple[int, int]] = {}
    for flow in sent:
        pair = (flow.receiver, flow.sender) if flow.backward else (flow.sender, flow.receiver)
        there, back = in_turn.get((*pair, flow.turn), (0, 0))
        alone = flow.link is None
        if flow.backward:
            # The gradients of several of the consumer's micro-batches make up one of the producer's.
            parts = -(-plan.stages[pair[0]].micro_batch // plan.stages[pair[1]].micro_batch)
            back = max(back, flow.duration_ns) if alone else back + parts * flow.duration_ns
        else:
            there = max(there, flow.duration_ns) if alone else there + flow.duration_ns
        in_turn[*pair, flow.turn] = there, back
    hops: dict[tuple[int, int], tuple[int, int]] = {}
    for (source, target, _), (there, back) in in_turn.items():
        most = hops.get((source, target), (0, 0))
        hops[source, target] = max(there, most[0]), max(back, most[1])
    return hops


def _fill(
    plan: Plan,
    counts: Sequence[Fraction],
    times: Sequence[StageTimes],
    hops: dict[tuple[int, int], tuple[int, int]],
) -> int:
    """(m - 1) periods of the busiest lane, in ns."""
    _, lanes_of = lanes_in_turn(plan)
    load: dict[int, Fraction] = {}
    for stage, lanes in enumerate(lanes_of):
        transfers = max((sum(ns) for (before, _), ns in hops.items() if before == stage), default=0)
        taken = (counts[stage] - 1) * (times[stage].period + transfers) / len(lanes)
        for lane in lanes:
            load[lane] = load.get(lane, Fraction(0)) + taken
    return -int(-max(load.values()) // 1)


def _path(
    problem: Problem, plan: Plan, times: Sequence[StageTimes], hops: dict[tuple[int, int], tuple[int, int]]
) -> int:
    """The longest path of forwards, transfers and backwards, in ns."""
    edges = stage_edges(problem.profile.graph, plan)
    sizes = [stage.micro_batch for stage in plan.stages]
    after: list[list[int]] = [[] for _ in sizes]
    for before, successor in edges:
        after[before].append(successor)
    order = topological_order(after, [f"stage {stage}" for stage in range(len(sizes))])
    behind, ahead = list(sizes), list(sizes)
    for stage in reversed(order):
        behind[stage] = max([sizes[stage], *(behind[successor] for successor in after[stage])])
    for stage in order:
        for successor in after[stage]:
            ahead[successor] = max(ahead[successor], ahead[stage])
    longest = [0] * len(sizes)
    for stage in reversed(order):
        own = times[stage].period * -(-max(behind[stage], ahead[stage]) // sizes[stage])
        tails = (longest[successor] + sum(hops.get((stage, successor), (0, 0))) for successor in after[stage])
        longest[stage] = own + max(tails, default=0)
    return max(longest)
