"""The planner `layout`: what training frameworks run. One set of degrees for all stages, uneven cuts."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise

from pipebench.algorithms.chains.level_cuts import (
    Bounds,
    Homes,
    cut_items,
    equal_bounds,
    level_devices,
    loads_of,
    smallest_bottleneck,
)
from pipebench.algorithms.chains.stage_row import Way, recompute_notices, stage_row
from pipebench.algorithms.planning import idle_devices, memory_limits
from pipebench.check import check_schedule
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.hooks.context import Context
from pipebench_baselines.chain_items import ItemCosts, Items
from pipebench_baselines.layout_shapes import LayoutShape, layout_shapes


def neighbours(bounds: Bounds) -> Iterator[Bounds]:
    """Cuts with each boundary moved by one either way, those of the last stages first; then with runs of
    boundaries moved.

    A run of boundaries moves an item between stages that are not next to each other. No stage is left empty.
    """
    inner = range(len(bounds) - 2, 0, -1)
    runs = [(boundary, boundary) for boundary in inner]
    runs += [(first, last) for last in inner for first in range(last - 1, 0, -1)]
    for first, last in runs:
        for step in (-1, 1):
            moved = tuple(bound + step if first <= k <= last else bound for k, bound in enumerate(bounds))
            if moved[first - 1] < moved[first] and moved[last] < moved[last + 1]:
                yield moved


def rough(problem: Problem, costs: ItemCosts, shape: LayoutShape) -> float:
    """A rough time of a mini-batch in ns: the work spread as evenly as the largest item allows, and the bubble."""
    each = max(costs.total_ns / shape.pipeline, costs.longest_ns)
    rounds = problem.mini_batch // shape.micro_batch
    return each * (rounds + (shape.pipeline - 1) / shape.sharers) + shape.sharers * costs.every_update_ns


def cuts(problem: Problem, costs: ItemCosts, shape: LayoutShape, items: int, limit: int) -> list[Bounds]:
    """Cuts whose busiest device is fast; empty where they cannot fit. With several stages a device, fit is an
    estimate.
    """
    every = costs.every
    if shape.pipelines == 1 and (costs.state_bytes[-1] + shape.stages * every.held) / shape.pipeline > limit:
        return []
    start = equal_bounds(items, shape.stages)
    level = level_devices(costs.times_ns, shape.homes, start)
    if shape.sharers > 1:
        listed = dict.fromkeys((level, _late(level, shape)))
        return [bounds for bounds in listed if _may_fit(problem, costs, shape, bounds, limit)]
    micro_batches = problem.mini_batch // shape.micro_batch
    held, saved = costs.state_bytes, costs.saved_bytes
    once = every.held + every.while_live + every.workspace + costs.workspace

    def fits(stage: int, first: int, end: int) -> bool:
        live = min(shape.stages - stage, micro_batches)
        each = every.per_micro_batch + saved[end] - saved[first]
        return bool(once + held[end] - held[first] + live * each <= limit)

    exact = smallest_bottleneck(costs.times_ns, shape.stages, fits)
    likely = [bounds for bounds in (level,) if all(fits(s, a, b) for s, (a, b) in enumerate(pairwise(bounds)))]
    return list(dict.fromkeys((*likely, *exact)))


def _may_fit(problem: Problem, costs: ItemCosts, shape: LayoutShape, bounds: Bounds, limit: int) -> bool:
    """Whether devices can hold their weights, and their mean stage for each micro-batch of the warm-up.

    That rule is of interleaved 1F1B. For other placements the scheduler and the check decide.
    """
    if shape.placement != "in-turn":
        return True
    total = problem.mini_batch // shape.micro_batch * shape.virtual
    for rank in range(shape.pipeline):
        runs = [(bounds[k], bounds[k + 1]) for k in range(rank, shape.stages, shape.pipeline)]
        live = min(total, 2 * (shape.pipeline - rank - 1) + (shape.virtual - 1) * shape.pipeline + 1)
        held = sum(costs.every.held + costs.state_bytes[end] - costs.state_bytes[first] for first, end in runs)
        saved = sum(costs.saved_bytes[end] - costs.saved_bytes[first] for first, end in runs) / shape.virtual
        if held + live * (costs.every.per_micro_batch + saved) > limit:
            return False
    return True


def _late(level: Bounds, shape: LayoutShape) -> Bounds:
    """As `level`, with one item of the last stage in an earlier stage of its device, so that the last stage ends
    sooner.
    """
    counts = [end - first for first, end in pairwise(level)]
    last, homes = len(counts) - 1, shape.homes
    other = next((k for k in range(last - 1, -1, -1) if homes[k] == homes[last]), last)
    if counts[last] > 1:
        counts[last] -= 1
        counts[other] += 1
    return (0, *accumulate(counts))


def busiest_ns(costs: ItemCosts, bounds: Bounds, homes: Homes) -> int:
    """Nanoseconds of the busiest device for one micro-batch of each pipeline."""
    return max(loads_of([0, *accumulate(costs.times_ns)], bounds, homes))


INTERLEAVED = "interleaved-1f1b"
MOST_CUT, MOST_SIMULATED = 48, 10
MOST_MOVES = 150


@dataclass(frozen=True, slots=True)
class LayoutCandidate:
    """A shape with its cuts and an estimate of its time."""

    rough_ns: float
    shape: LayoutShape
    bounds: Bounds
    plan: Plan


def plan(problem: Problem, context: Context) -> PlanResult:
    """The best simulated plan of those that look best by their load.

    Shapes are ranked by how long the work takes when it is spread evenly; the first MOST_CUT that can be cut are
    cut, the MOST_SIMULATED best of their busiest devices are scheduled (1f1b, interleaved where devices have
    several stages), checked and simulated. Where the user names a scheduler, stages stand as it takes them, and it
    orders them. Raises UnsupportedProblem, also where that scheduler orders none of the plans, InfeasibleProblem
    when nothing fits.
    """
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("layout plans for synchronous updates; the problem is async", "use --regime sync")
    if len(set(problem.cluster.devices)) > 1:
        raise UnsupportedProblem("layout plans for devices of one type")
    if context.services is None:
        raise PipebenchError("layout needs the suite's scheduler and simulator")
    items = cut_items(problem.profile.graph)
    search = _LayoutSearch(problem, items, context)
    for limit in memory_limits(problem):
        best = search.best(limit)
        if best is not None:
            time_ns, candidate, schedule = best
            own = candidate.shape.virtual > 1 and not context.scheduler
            return PlanResult(
                plan=candidate.plan,
                schedule=schedule if own else None,
                scheduler=INTERLEAVED if own else "",
                claimed_s=time_ns / NS_PER_S,
                termination="limit" if context.out_of_time() else "heuristic",
                notices=(
                    f"degrees: {candidate.shape}",
                    *recompute_notices(problem, candidate.shape.way),
                    *idle_devices(problem, candidate.plan),
                ),
            )
    if search.refusal is not None and not search.ordered:
        raise search.refusal
    raise InfeasibleProblem(
        f"nothing fits into {memory_limits(problem)[-1]} bytes a device",
        "use more devices, a smaller micro-batch, --recompute full (stage) or --optimizer-sharding zero1",
    )


class _LayoutSearch:
    """All shapes of a problem, the most promising first; costs are shared by shapes that run operators alike."""

    def __init__(self, problem: Problem, items: Items, context: Context) -> None:
        self._problem, self._items, self._context = problem, items, context
        self._model = CostModel(problem)
        self._costs: dict[tuple[Way, int, int], ItemCosts] = {}
        self.refusal: UnsupportedProblem | None = None
        """What the scheduler that the user names says of the first plan that it does not order."""
        self.ordered = 0
        """Plans that were scheduled."""
        listed = list(enumerate(layout_shapes(problem, len(items), context.placements)))
        self._ranked = [shape for _, _, shape in sorted((self._rough(shape), i, shape) for i, shape in listed)]

    def best(self, limit: int) -> tuple[int, LayoutCandidate, Schedule] | None:
        """The fastest of the first batch of candidates in which any fits."""
        left = self._cut(limit)
        while batch := sorted(islice(left, MOST_CUT), key=lambda candidate: candidate.rough_ns):
            best: tuple[int, LayoutCandidate, Schedule] | None = None
            tried = 0
            for candidate in batch:
                if tried >= MOST_SIMULATED or (best is not None and self._context.out_of_time()):
                    break
                found = self._simulate(candidate, limit)
                if found is not None:
                    tried += 1
                    best = found if best is None or found[0] < best[0] else best
            if best is not None:
                return self._local_search(best, limit)
        return None

    def _local_search(
        self, best: tuple[int, LayoutCandidate, Schedule], limit: int
    ) -> tuple[int, LayoutCandidate, Schedule]:
        """Move one boundary at a time as long as the simulation gets faster. The loads alone do not show these
        moves.
        """
        left, improved = MOST_MOVES, True
        while improved:
            improved = False
            _, candidate, _ = best
            for bounds in neighbours(candidate.bounds):
                if left == 0 or self._context.out_of_time():
                    return best
                left -= 1
                moved = self._candidate(candidate.shape, bounds)
                found = self._simulate(moved, limit)
                if found is not None and found[0] < best[0]:
                    best, improved = found, True
                    break
        return best

    def _simulate(self, candidate: LayoutCandidate, limit: int) -> tuple[int, LayoutCandidate, Schedule] | None:
        self._context.check_deadline()
        schedule = self._schedule_of(candidate)
        if schedule is None:
            return None
        self.ordered += 1
        verdict = check_schedule(self._problem, candidate.plan, schedule)
        if verdict.status != "valid" or max(verdict.peak_bytes.values()) > limit:
            return None
        self._context.count("simulated")
        return self._context.simulated_ns(self._problem, candidate.plan, schedule), candidate, schedule

    def _schedule_of(self, candidate: LayoutCandidate) -> Schedule | None:
        """The order of the plan; None where the scheduler that the user names refuses it."""
        name = self._context.scheduler
        if not name:
            name = "1f1b" if candidate.shape.virtual == 1 else INTERLEAVED
            return self._context.schedule(name, self._problem, candidate.plan)
        try:
            return self._context.schedule(name, self._problem, candidate.plan)
        except UnsupportedProblem as error:
            self.refusal = self.refusal or error
        except InvalidValue as error:
            self.refusal = self.refusal or UnsupportedProblem(error.message, error.hint)
        return None

    def _of(self, shape: LayoutShape) -> ItemCosts:
        key = shape.way, shape.micro_batch // shape.data_parallel, shape.data_parallel
        if key not in self._costs:
            self._costs[key] = ItemCosts(self._model, self._items, *key)
        return self._costs[key]

    def _rough(self, shape: LayoutShape) -> float:
        return rough(self._problem, self._of(shape), shape)

    def _cut(self, limit: int) -> Iterator[LayoutCandidate]:
        for shape in self._ranked:
            self._context.check_deadline()
            costs = self._of(shape)
            for bounds in cuts(self._problem, costs, shape, len(self._items), limit):
                self._context.count("cuts")
                yield self._candidate(shape, bounds)

    def _candidate(self, shape: LayoutShape, bounds: Bounds) -> LayoutCandidate:
        costs = self._of(shape)
        rounds = self._problem.mini_batch // shape.micro_batch
        ahead = (shape.pipeline - 1) / shape.sharers * costs.total_ns / shape.pipeline
        busiest = busiest_ns(costs, bounds, shape.homes)
        plan = plan_of(self._problem, self._items, shape, bounds)
        if self._context.scheduler not in ("", "1f1b"):
            plan = plan.without_in_flight()
        update = shape.sharers * costs.every_update_ns
        return LayoutCandidate(busiest * rounds / shape.pipelines + ahead + update, shape, bounds, plan)


def plan_of(problem: Problem, items: Items, shape: LayoutShape, bounds: Bounds) -> Plan:
    """The stages of these cuts."""
    return stage_row(
        problem,
        [tuple(op for group in items[first:end] for op in group) for first, end in pairwise(bounds)],
        shape.way,
        data_parallel=shape.data_parallel,
        pipeline=shape.pipeline,
        micro_batch=shape.micro_batch,
        placement=shape.placement,
    )
