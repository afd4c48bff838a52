"""A partition made for one regime, run in the other: the micro-batch that suits it there."""

from msgspec.structs import replace

from pipebench.algorithms.in_flight import in_flight
from pipebench.algorithms.micro_batches import micro_batch_candidates
from pipebench.algorithms.planning import Offers, memory_limits, mini_batch_ns
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem


def adapt_micro_batch(problem: Problem, plan: Plan, context: Offers) -> Plan:
    """The stages of a plan with the micro-batch of the shortest mini-batch of `problem` that fits in memory.

    What is in flight is left to the scheduler. A micro-batch that was best without a flush may leave a pipeline
    that is flushed at every update with nothing to overlap. Pinned micro-batches stay; so do those of plans
    with several pipelines, several sizes or k > 1. Where no size fits, the one of the smallest peak (sync), or the
    plan's.
    """
    free = _at(plan, None)
    sizes = {stage.micro_batch for stage in plan.stages}
    if len(sizes) > 1 or plan.all_pipelines > 1 or any(stage.k > 1 for stage in plan.stages):
        return free
    model = CostModel(problem)
    counts = sorted({stage.data_parallel for stage in plan.stages})
    offered = {*micro_batch_candidates(problem, counts), *sizes} if problem.pins.micro_batch is None else sizes
    plans = [_at(plan, size) for size in sorted(offered) if size >= counts[-1] and problem.mini_batch % size == 0]
    if problem.regime.mode == "sync":
        plans = _fitting(problem, model, plans)
    timed = [(time_ns, made) for made in plans if (time_ns := mini_batch_ns(problem, made, context)) is not None]
    return min(timed, key=lambda pair: pair[0])[1] if timed else free


def _at(plan: Plan, micro_batch: int | None) -> Plan:
    stages = (replace(s, in_flight=0, micro_batch=micro_batch or s.micro_batch) for s in plan.stages)
    return replace(plan, stages=tuple(stages))


def _fitting(problem: Problem, model: CostModel, plans: list[Plan]) -> list[Plan]:
    """Those that fit under 1F1B, within the reserve if any does; if none fits, the one of the smallest peak."""
    peaks = [_peak_bytes(problem, model, plan) for plan in plans]
    for limit in memory_limits(problem):
        fitting = [plan for plan, peak in zip(plans, peaks, strict=True) if peak <= limit]
        if fitting:
            return fitting
    return [plans[peaks.index(min(peaks))]] if plans else []


def _peak_bytes(problem: Problem, model: CostModel, plan: Plan) -> int:
    """On the fullest device, with as many micro-batches in flight as 1F1B keeps."""
    edges = model.messages(plan)
    kept = in_flight(
        [stage.micro_batch for stage in plan.stages],
        [stage.k for stage in plan.stages],
        stage_edges(problem.profile.graph, plan),
        problem.mini_batch,
    )
    live = (samples // stage.micro_batch for samples, stage in zip(kept, plan.stages, strict=True))
    return max(model.stage_memory(plan, at, edges).peak(count) for at, count in enumerate(live))
