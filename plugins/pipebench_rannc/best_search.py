"""variant=best: every number of nodes, stages and micro-batches, and the plan of the shortest simulated mini-batch."""

from collections.abc import Iterator
from dataclasses import dataclass

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
RIVALS = ("data-parallel", "gpipe-hybrid")


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

    most: cuts to simulate. One that cannot beat the best by the work of its busiest stage is left out. rivals:
    after them, the plans of other planners.
    """
    best: Scored | None = None
    simulated = 0
    for made in cuts:
        if simulated == most or (best is not None and context.out_of_time()):
            break
        if best is not None and made.bound_ns >= best.time_ns:
            context.count("bounded")
            continue
        simulated += 1
        context.report(simulated / most, f"{len(made.stages)} stages, micro-batch {made.flow.micro_batch}")
        for scored in _scored(problem, plan_of(runs, made), context):
            if best is None or scored.time_ns < best.time_ns:
                best = scored
    context.count("simulated", simulated)
    for plan in _rivals(problem, context) if rivals else ():
        for scored in _scored(problem, plan, context):
            if best is None or scored.time_ns < best.time_ns:
                best = scored
                context.count("rivals_taken")
    return best


def _scored(problem: Problem, plan: Plan, context: Context) -> Iterator[Scored]:
    """The plan under each scheduler that keeps it valid."""
    if context.services is None:
        yield Scored(plan, estimate(problem, plan))
        return
    for name in SCHEDULERS if len(plan.stages) > 1 else SCHEDULERS[:1]:
        try:
            schedule = context.schedule(name, problem, plan)
            if not _valid(problem, plan, schedule):
                continue
            yield Scored(plan, context.simulate(problem, plan, schedule).total_ns, schedule, name)
        except PipebenchError:
            context.count("not_scheduled")


def _valid(problem: Problem, plan: Plan, schedule: Schedule) -> bool:
    return check_schedule(problem, plan, schedule).status == "valid"


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


