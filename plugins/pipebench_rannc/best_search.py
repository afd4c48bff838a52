"""variant=best: every number of nodes, stages and micro-batches; the shortest simulated mini-batch wins."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipebench.algorithms.grouped import grouped
from pipebench.check import check_schedule
from pipebench.costs.estimate import estimate
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.hooks.context import Context
from pipebench_rannc.candidates import Candidate, candidate, plan_of
from pipebench_rannc.runs import Runs
from pipebench_rannc.space import flows, replica_choices, shapes, stage_counts
from pipebench_rannc.stage_dp import all_labels
from pipebench_rannc.tables import from_the_end

SCHEDULERS = ("1f1b", "gpipe")
RIVALS = ("data-parallel", "gpipe-hybrid", "gpipe-hybrid[checkpointing=needed]")


@dataclass(frozen=True, slots=True)
class Scored:
    """A plan under a schedule. time_ns: of a mini-batch, simulated. scheduler: whose schedule it is."""

    plan: Plan
    time_ns: int
    schedule: Schedule | None = None
    scheduler: str = ""


def every_cut(problem: Problem, runs: Runs, limit_bytes: int, context: Context) -> list[Candidate]:
    """One cut for each number of nodes, stages and micro-batches that has any, the most promising first.

    The cut of the smallest longest forward + longest backward, exact. Stops at the deadline.
    """
    found: list[Candidate] = []
    recompute = problem.pins.recompute
    pinned = None if recompute is None else recompute == "stage"
    for shape in shapes(problem, doubling=False):
        counts = stage_counts(problem, shape, runs.size)
        if not counts:
            continue
        for flow in flows(problem, shape, doubling=False):
            if context.out_of_time():
                return sorted(found, key=lambda each: each.estimate_ns)
            replicas = replica_choices(problem, flow, powers=False)
            if not replicas:
                continue
            tabled = from_the_end(runs, flow, replicas, limit_bytes, pinned, counts[-1])
            solved = all_labels(tabled.times, counts[-1], shape.devices)
            context.count("stage_searches")
            context.count("transitions", solved.transitions)
            found += [
                candidate(runs, flow, cut, tabled, True) for stages, cut in solved.cuts.items() if stages in counts
            ]
    context.count("candidates", len(found))
    return sorted(found, key=lambda each: each.estimate_ns)


def best_of(
    problem: Problem, runs: Runs, cuts: list[Candidate], most: int, rivals: bool, context: Context
) -> Scored | None:
    """The shortest of the most promising cuts and of the rivals' plans; None where nothing is valid.

    most: cuts to simulate, block by block. One that cannot beat the best by the work of its busiest stage is left
    out. The winner is scored again, operator by operator. rivals: the plans of other planners.
    """
    ranked = _simulated(problem, runs, cuts, most, context)
    best: Scored | None = None
    for _, made, name in sorted(ranked, key=lambda each: each[0]):
        best = _scored(problem, plan_of(runs, made), name, context)
        if best is not None:
            break
    for plan in _rivals(problem, context) if rivals else ():
        for name in _schedulers(plan):
            scored = _scored(problem, plan, name, context)
            if scored is not None and (best is None or scored.time_ns < best.time_ns):
                best = scored
                context.count("rivals_taken")
    return best


def _simulated(
    problem: Problem, runs: Runs, cuts: list[Candidate], most: int, context: Context
) -> list[tuple[int, Candidate, str]]:
    """(ns of a mini-batch, cut, scheduler) of the cuts that were simulated."""
    sizes = {-(-made.flow.micro_batch // stage.replicas) for made in cuts for stage in made.stages}
    by_block = grouped(runs.model, runs.blocks.positions, sizes) if sizes else None
    found: list[tuple[int, Candidate, str]] = []
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
            scored = _scored(by_block or problem, plan, name, context)
            if scored is not None:
                found.append((scored.time_ns, made, name))
    context.count("simulated", simulated)
    return found


def _schedulers(plan: Plan) -> tuple[str, ...]:
    return SCHEDULERS if len(plan.stages) > 1 else SCHEDULERS[:1]


def _scored(problem: Problem, plan: Plan, scheduler: str, context: Context) -> Scored | None:
    """The plan under a scheduler, None where that is not valid. Without services: the suite's closed form."""
    if context.services is None:
        return Scored(plan, estimate(problem, plan))
    try:
        schedule = context.schedule(scheduler, problem, plan)
        if check_schedule(problem, plan, schedule).status != "valid":
            return None
        return Scored(plan, context.simulate(problem, plan, schedule).total_ns, schedule, scheduler)
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
