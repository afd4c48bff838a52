"""The planner `layout`: what training frameworks run. One set of degrees for all stages, contiguous uneven
cuts.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise

from pipebench.algorithms.layer_groups import cut_items
from pipebench.algorithms.level_cuts import Bounds, equal_bounds, level_devices, smallest_bottleneck
from pipebench.algorithms.memory_limit import memory_limits
from pipebench.algorithms.stage_row import stage_row
from pipebench.check import check_schedule
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.domain.schedule import Schedule
from pipebench.hooks.context import Context
from pipebench_baselines.chain_items import ItemCosts, Items
from pipebench_baselines.shapes import Shape, shapes

INTERLEAVED = "interleaved-1f1b"
MOST_CUT, MOST_SIMULATED = 48, 10
MOST_TRIES = 6


@dataclass(frozen=True, slots=True)
class _Candidate:
    rough_ns: float
    shape: Shape
    plan: Plan


def plan(problem: Problem, context: Context) -> PlanResult:
    """The best simulated plan of those that look best by their load.

    Shapes are ranked by how long the work takes when it is spread evenly; the first MOST_CUT that can be cut are
    cut, the MOST_SIMULATED best of their busiest devices are scheduled (1f1b, interleaved where devices have
    several stages), checked and simulated. Raises UnsupportedProblem, InfeasibleProblem when nothing fits.
    """
    if problem.regime.mode != "sync":
        raise UnsupportedProblem("layout plans for synchronous updates; the problem is async", "use --regime sync")
    if len(set(problem.cluster.devices)) > 1:
        raise UnsupportedProblem("layout plans for devices of one type")
    if context.services is None:
        raise PipebenchError("layout needs the suite's scheduler and simulator")
    items = cut_items(problem.profile.graph)
    model = CostModel(problem)
    ranked = sorted(
        (rough(problem, ItemCosts(model, items, shape.way, _local(shape), shape.data_parallel), shape), i, shape)
        for i, shape in enumerate(shapes(problem, len(items)))
    )
    for limit in memory_limits(problem):
        made = list(islice(_cut(model, items, [s for _, _, s in ranked], limit, context), MOST_CUT))
        best: tuple[int, _Candidate, Schedule] | None = None
        made.sort(key=lambda candidate: candidate.rough_ns)
        tried = 0
        for candidate in made:
            if (best is not None and context.out_of_time()) or tried >= MOST_SIMULATED:
                break
            context.check_deadline()
            name = "1f1b" if candidate.shape.virtual == 1 else INTERLEAVED
            schedule = context.schedule(name, problem, candidate.plan)
            verdict = check_schedule(problem, candidate.plan, schedule)
            if verdict.status != "valid" or max(verdict.peak_bytes.values()) > limit:
                continue
            tried += 1
            context.count("simulated")
            time_ns = context.simulate(problem, candidate.plan, schedule).total_ns
            if best is None or time_ns < best[0]:
                best = time_ns, candidate, schedule
        if best is not None:
            time_ns, candidate, schedule = best
            virtual = candidate.shape.virtual > 1
            return PlanResult(
                plan=candidate.plan,
                schedule=schedule if virtual else None,
                scheduler=INTERLEAVED if virtual else "",
                claimed_s=time_ns / NS_PER_S,
                notices=(f"degrees: {candidate.shape}",),
            )
    raise InfeasibleProblem(
        f"layout: nothing fits into {memory_limits(problem)[-1]} bytes a device",
        "use more devices, a smaller micro-batch, --recompute stage or --optimizer-sharding zero1",
    )


def rough(problem: Problem, costs: ItemCosts, shape: Shape) -> float:
    """Nanoseconds of a mini-batch whose work is spread evenly, as far as its largest item lets it, bubble
    included.
    """
    each = max(sum(costs.times_ns) / shape.pipeline, *costs.times_ns)
    rounds = problem.mini_batch // shape.micro_batch
    return each * (rounds + (shape.pipeline - 1) / shape.virtual)


def _local(shape: Shape) -> int:
    return shape.micro_batch // shape.data_parallel


def _cut(
    model: CostModel, items: Items, ranked: list[Shape], limit: int, context: Context
) -> Iterator[_Candidate]:
    problem = model.problem
    for shape in ranked:
        context.check_deadline()
        costs = ItemCosts(model, items, shape.way, _local(shape), shape.data_parallel)
        for bounds in _bounds(problem, costs, shape, len(items), limit):
            context.count("cuts")
            busiest = _busiest(costs, bounds, shape.pipeline)
            rounds = problem.mini_batch // shape.micro_batch
            ahead = (shape.pipeline - 1) / shape.virtual * sum(costs.times_ns) / shape.pipeline
            yield _Candidate(busiest * rounds + ahead, shape, plan_of(problem, items, shape, bounds))


def _bounds(problem: Problem, costs: ItemCosts, shape: Shape, items: int, limit: int) -> list[Bounds]:
    micro_batches = problem.mini_batch // shape.micro_batch
    held, saved = costs.held, costs.saved

    def fits(stage: int, first: int, end: int) -> bool:
        live = min(shape.stages - stage, micro_batches)
        bytes_used = held[end] - held[first] + live * (saved[end] - saved[first]) + costs.workspace
        return bool(bytes_used <= limit)

    start = equal_bounds(items, shape.stages)
    level = level_devices(costs.times_ns, shape.pipeline, shape.virtual, start)
    if shape.virtual > 1:
        return list(dict.fromkeys((level, _late(costs, level, shape))))
    exact = smallest_bottleneck(costs.times_ns, shape.stages, fits)
    likely = [bounds for bounds in (level,) if all(fits(s, a, b) for s, (a, b) in enumerate(pairwise(bounds)))]
    return list(dict.fromkeys((*likely, *exact)))


def _late(costs: ItemCosts, level: Bounds, shape: Shape) -> Bounds:
    """Of equal loads the one whose last stage, with the head, is smallest."""
    counts = [b - a for a, b in pairwise(level)]
    last = len(counts) - 1
    for other in range(last % shape.pipeline, last, shape.pipeline):
        while counts[last] > 1 and sum(costs.times_ns[level[last] :]) > max(costs.times_ns) * counts[other]:
            counts[last] -= 1
            counts[other] += 1
            break
    made = [0]
    for count in counts:
        made.append(made[-1] + count)
    return tuple(made)


def _busiest(costs: ItemCosts, bounds: Bounds, devices: int) -> int:
    loads = [0] * devices
    for stage, (first, end) in enumerate(pairwise(bounds)):
        loads[stage % devices] += sum(costs.times_ns[first:end])
    return max(loads)


def plan_of(problem: Problem, items: Items, shape: Shape, bounds: Bounds) -> Plan:
    """The stages of these cuts."""
    return stage_row(
        problem,
        [tuple(op for group in items[first:end] for op in group) for first, end in pairwise(bounds)],
        shape.way,
        data_parallel=shape.data_parallel,
        pipeline=shape.pipeline,
        micro_batch=shape.micro_batch,
    )
