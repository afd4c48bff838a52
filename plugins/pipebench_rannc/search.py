"""The numbers of nodes, stages and micro-batches: Algorithm 2 as printed, or the best of all simulated."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.algorithms.blocks.grouped import grouped_problem
from pipebench.check import check_schedule
from pipebench.costs.estimate import estimate
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.hooks.context import Context
from pipebench_rannc.candidates import CutCandidate, cut_candidate, plan_of
from pipebench_rannc.runs import BlockRuns
from pipebench_rannc.space import MicroBatchFlow, PipelineCopies, flows, replica_choices, shapes, stage_counts
from pipebench_rannc.stage_dp import CutTables, all_labels, one_label
from pipebench_rannc.stage_tables import (
    StageTables,
    classes_of,
    printed_tables,
    refuse_large,
    tables_from_the_end,
)
from pipebench_rannc.variants import Differences


def printed_search(
    problem: Problem, runs: BlockRuns, limit_bytes: int, chosen: Differences, context: Context
) -> CutCandidate | None:
    """The best number of micro-batches at the first number of stages that any plan has; None where none has.

    Raises DeadlineReached.
    """
    tried = 0
    for shape in shapes(problem, chosen.nodes == "doubling"):
        first = node_first(shape) if chosen.stages == "printed" else tried + 1
        ready: dict[MicroBatchFlow, StageTables] = {}
        for stages in stage_counts(problem, shape, runs.size):
            if stages < first and problem.pins.pipeline is None:
                continue
            found = []
            for flow in flows(problem, shape, True, chosen.micro_batches):
                context.check_deadline()
                if flow not in ready:
                    ready[flow] = _stage_tables(problem, runs, flow, limit_bytes, chosen)
                solved = _solve(ready[flow], stages, shape.devices, chosen, context)
                context.count("stage_searches")
                context.count("transitions", solved.transitions)
                if stages in solved.cuts:
                    both = chosen.communication == "both"
                    found.append(cut_candidate(runs, flow, solved.cuts[stages], ready[flow], False, both))
            if found:
                steps = chosen.choice == "steps"
                return min(found, key=lambda each: each.steps_ns if steps else each.bottleneck_ns)
        tried = max(tried, min(shape.devices, runs.size))
    return None


def node_first(shape: PipelineCopies) -> int:
    """D_node (n - 1) + 1, from where Algorithm 2 counts stages."""
    return shape.devices // shape.nodes * (shape.nodes - 1) + 1


def _stage_tables(
    problem: Problem, runs: BlockRuns, flow: MicroBatchFlow, limit_bytes: int, chosen: Differences
) -> StageTables:
    pinned = problem.pins.recompute
    recompute = flow.micro_batches > 1 if pinned is None else pinned == "stage"
    counts = replica_choices(problem, flow, chosen.replicas == "powers")
    return printed_tables(runs, flow, counts, limit_bytes, chosen, recompute)


def _solve(tables: StageTables, stages: int, devices: int, chosen: Differences, context: Context) -> CutTables:
    if chosen.labels == "all":
        return all_labels(tables.times, stages, devices, context.out_of_time)
    return one_label(tables.times, stages, devices, chosen.prune, context.out_of_time)


SCHEDULERS = ("1f1b", "gpipe")
RIVALS = ("data-parallel", "gpipe-hybrid", "gpipe-hybrid[checkpointing=needed]")


@dataclass(frozen=True, slots=True)
class ScheduledCut:
    """A plan under a schedule. time_ns: of a mini-batch, simulated. scheduler: whose schedule it is."""

    plan: Plan
    time_ns: int
    schedule: Schedule | None = None
    scheduler: str = ""


def every_cut(problem: Problem, runs: BlockRuns, limit_bytes: int, context: Context) -> list[CutCandidate]:
    """The best cut for each number of nodes, stages and micro-batches, the most promising first.

    The best cut has the smallest longest forward + longest backward (exact). Stops at the deadline.
    Raises UnsupportedProblem before it starts where it would come to tables that are too large.
    """
    found: list[CutCandidate] = []
    recompute = problem.pins.recompute
    pinned = None if recompute is None else recompute == "stage"
    searches = list(_searches(problem, runs))
    for flow, counts, _ in searches:
        refuse_large(runs.size, flow.shape.devices, classes_of(flow, counts[-1]))
    for flow, counts, replicas in searches:
        if context.out_of_time():
            return sorted(found, key=lambda each: each.estimate_ns)
        tables = tables_from_the_end(runs, flow, replicas, limit_bytes, pinned, counts[-1])
        solved = all_labels(tables.times, counts[-1], flow.shape.devices, context.out_of_time)
        context.count("stage_searches")
        context.count("transitions", solved.transitions)
        found += [
            cut_candidate(runs, flow, cut, tables, True) for stages, cut in solved.cuts.items() if stages in counts
        ]
    context.count("candidates", len(found))
    return sorted(found, key=lambda each: each.estimate_ns)


def _searches(problem: Problem, runs: BlockRuns) -> Iterator[tuple[MicroBatchFlow, range, tuple[int, ...]]]:
    """The flows to search, each with its numbers of stages and of replicas."""
    for shape in shapes(problem, doubling=False):
        counts = stage_counts(problem, shape, runs.size)
        for flow in flows(problem, shape, doubling=False) if counts else ():
            if replicas := replica_choices(problem, flow, powers=False):
                yield flow, counts, replicas


def best_of(
    problem: Problem, runs: BlockRuns, cuts: list[CutCandidate], most: int, rivals: bool, context: Context
) -> ScheduledCut | None:
    """The shortest plan among the most promising cuts and the rivals; None where none is valid.

    most: number of cuts to simulate, block by block.
    rivals: plans of other planners.

    A cut is left out when the work of its busiest stage alone is not below the best plan. The winner is scored
    again, operator by operator.
    """
    ranked = _simulate_cuts(problem, runs, cuts, most, context)
    best: ScheduledCut | None = None
    for _, made, name in sorted(ranked, key=lambda each: each[0]):
        best = _schedule_cut(problem, plan_of(runs, made), name, context)
        if best is not None:
            break
    for plan in _rivals(problem, context) if rivals else ():
        for name in _schedulers(plan):
            scored = _schedule_cut(problem, plan, name, context)
            if scored is not None and (best is None or scored.time_ns < best.time_ns):
                best = scored
                context.count("rivals_taken")
    return best


def _simulate_cuts(
    problem: Problem, runs: BlockRuns, cuts: list[CutCandidate], most: int, context: Context
) -> list[tuple[int, CutCandidate, str]]:
    """(ns of a mini-batch, cut, scheduler) of the cuts that were simulated."""
    sizes = {-(-made.flow.micro_batch // stage.replicas) for made in cuts for stage in made.stages}
    by_block = grouped_problem(runs.model, runs.blocks.positions, sizes) if sizes else None
    found: list[tuple[int, CutCandidate, str]] = []
    simulated = 0
    for made in cuts:
        if simulated == most or (found and context.out_of_time()):
            break
        if found and made.bound_ns >= min(each[0] for each in found):
            context.count("bounded")
            continue
        simulated += 1
        context.report(simulated / most, f"{len(made.stages)} stages, micro-batch {made.flow.micro_batch}")
        plan = plan_of(runs, made, by_block is not None)
        for name in _schedulers(plan):
            scored = _schedule_cut(by_block or problem, plan, name, context)
            if scored is not None:
                found.append((scored.time_ns, made, name))
    context.count("simulated", simulated)
    return found


def _schedulers(plan: Plan) -> tuple[str, ...]:
    return SCHEDULERS if len(plan.stages) > 1 else SCHEDULERS[:1]


def _schedule_cut(problem: Problem, plan: Plan, scheduler: str, context: Context) -> ScheduledCut | None:
    """The plan under a scheduler; None where that is not valid. Without services it is the suite's closed form."""
    if context.services is None:
        return ScheduledCut(plan, estimate(problem, plan))
    try:
        schedule = context.schedule(scheduler, problem, plan)
        if check_schedule(problem, plan, schedule).status != "valid":
            return None
        return ScheduledCut(plan, context.simulated_ns(problem, plan, schedule), schedule, scheduler)
    except PipebenchError:
        context.count("not_scheduled")
        return None


def _rivals(problem: Problem, context: Context) -> Iterator[Plan]:
    if context.services is None:
        return
    for name in RIVALS:
        if context.out_of_time():
            return
        try:
            yield context.plan(name, problem).plan
        except PipebenchError:
            context.count("rivals_without_plan")
