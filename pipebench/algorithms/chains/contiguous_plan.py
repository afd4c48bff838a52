"""The best contiguous plan over all micro-batch sizes and memory limits, with its 1F1B* schedule and its bound."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from msgspec.structs import replace

from pipebench.algorithms.chains.chain import Chain, build_chain
from pipebench.algorithms.chains.contiguous import (
    Partition,
    StageRange,
    contiguous_optimum,
    decide,
    least_memory,
    shortest_period,
    stage_range,
)
from pipebench.algorithms.chains.one_f_one_b_star import groups, one_f_one_b_star
from pipebench.algorithms.graph_orders import CutRule, Layers, crosses_twice, linearise
from pipebench.algorithms.micro_batches import divisors, micro_batch_candidates, micro_batch_notices
from pipebench.algorithms.planning import idle_devices, memory_limits, whole_stages
from pipebench.costs.messages import level_between
from pipebench.costs.model import CostModel
from pipebench.defaults import ONE_F_ONE_B_STAR
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult

COARSE = 2048
"""The bound is closed in on to one part in so many."""


def take_turns(model: CostModel, layers: Layers, micro_batch: int) -> bool:
    """Whether both transfers of every cut occupy one link, so that the optimum of 1F1B* is a bound.

    Not on links that carry both directions at once, and not where one of the two takes no time (a tensor
    without a gradient): it finds its way past the other one, which 1F1B* does not count on. What takes no time on
    the fastest links may take some on others: every two neighbours are looked at.
    """
    cluster = model.problem.cluster
    fastest = replace(
        cluster.levels[0],
        latency_s=min(level.latency_s for level in cluster.levels),
        bandwidth_bytes_s=max(level.bandwidth_bytes_s for level in cluster.levels),
    )
    between = [level_between(cluster, (device,), (device + 1,)) for device in range(cluster.size - 1)]
    terms = model.terms(micro_batch)
    for level in dict.fromkeys((fastest, *between)):
        there, back = (
            model.formula.message_ns(level, sizes, 1, 1) for sizes in (terms.tensor_bytes, terms.gradient_bytes)
        )
        for crossing in map(list, layers.crossing):
            if there[crossing].any() != back[crossing].any():
                return False
    return cluster.link_mode == "half"


def both_ways_bound_ns(
    mini_batch: int,
    chains: Sequence[Chain],
    stages: StageRange,
    memory: int,
    best_ns: int,
    count: Callable[[str, int], None],
    stopped: Callable[[], bool],
) -> int | None:
    """Nanoseconds of a mini-batch that no plan over any of the chains is below; at most best_ns, which one takes.

    None when `stopped` said so before it was proven. chains: one for each micro-batch size. Not for link mode
    `delay`, where tensors of one cut travel at the same time.

    Proof. Take any pattern of period T in which forwards and backwards are not interrupted, each micro-batch
    passes the stages of a chain in order, and each direction of a link carries one transfer at a time. Let V be
    the time from the end of a micro-batch's forward on a stage to the start of its backward there, u = f + b the
    stage's work. Modulo T both share the device, so the time from the start of the one to the end of the other
    is at least V (+) u (MadPipe section 4.2.2): V + u, or ceil(V / T) T + u where that would pass the next
    multiple of T; and the stage has as many live micro-batches as 1F1B* counts. At the cut in front of it the
    two transfers, c in all, follow one another too, but share no resource: they add c to that time and nothing
    else, and the longer one, at least c / 2, is at most T. So `decide` with both_ways finds the least delay
    that any pattern can have, delays only grow with those behind them, and a period at which it finds no
    partition within the memory is below that of every pattern.
    """
    bound_ns = best_ns
    for chain in chains:
        repeats = mini_batch // chain.micro_batch
        high = -(-bound_ns // repeats)
        low = min(shortest_period(chain, stages), high)
        probe = high - 1
        step = max(1, high // COARSE)
        while high - low > high // COARSE:
            if stopped():
                return None
            fits, states, _ = decide(chain.arrays, probe, stages.least, stages.most, memory, True)
            count("probes", 1)
            count("states", states)
            if fits:
                high = probe
            else:
                low = probe + 1
            probe = max(low, high - step) if low <= high - step else (low + high - 1) // 2
            step *= 2
        bound_ns = min(bound_ns, repeats * low)
    return bound_ns


@dataclass(frozen=True, slots=True)
class Sweep:
    """The best partition of all micro-batch sizes.

    memory: bytes a device that it keeps to. mini_batch_ns: its period times the micro-batches of a
    mini-batch. lower_ns: no partition of any size is below in that memory, on links of mode `half` under 1F1B*,
    else in any periodic order; None where nothing was proven (`both_ways_bound_ns`). complete: the searches ran
    to their end.
    """

    chain: Chain
    partition: Partition
    memory: int
    mini_batch_ns: int
    lower_ns: int | None
    complete: bool


def sweep(
    model: CostModel, cuts: CutRule, count: Callable[[str, int], None], stopped: Callable[[], bool]
) -> Sweep | None:
    """The shortest mini_batch / micro_batch x period, under the first memory limit that admits a plan.

    cuts: where stages may begin (see linearise). count: receives the work done, `probes` (decisions at one
    period) and `states` (intervals looked at). None when `stopped` said so before a plan was found. Raises
    UnsupportedProblem (see stage_range) and InfeasibleProblem with the least memory of this class.
    """
    problem = model.problem
    stages = stage_range(problem)
    sizes = micro_batch_candidates(problem)
    layers = _layers(model, stages, cuts)
    recompute = whole_stages(problem, "this planner")
    chains = [build_chain(model, layers, size, recompute) for size in sizes]
    for memory in memory_limits(problem):
        found = _over_sizes(model, chains, stages, memory, count, stopped)
        if found is not None or stopped():
            return found
    raise _infeasible(problem, chains, stages)


def _layers(model: CostModel, stages: StageRange, cuts: CutRule) -> Layers:
    layers = linearise(model.graph, cuts)
    if len(layers) < stages.least:
        raise InfeasibleProblem(
            f"{stages.least} stages are pinned, {model.graph.name!r} can be cut into {len(layers)} at most"
        )
    return layers


def _over_sizes(
    model: CostModel,
    chains: list[Chain],
    stages: StageRange,
    memory: int,
    count: Callable[[str, int], None],
    stopped: Callable[[], bool],
) -> Sweep | None:
    problem = model.problem
    best: tuple[Chain, Partition] | None = None
    best_ns: int | None = None
    lowers: list[int] = []
    for chain in chains:
        repeats = problem.mini_batch // chain.micro_batch
        lower = shortest_period(chain, stages)
        below = None if best_ns is None else -(-best_ns // repeats)
        if not stopped() and (below is None or lower < below):
            result = contiguous_optimum(chain, stages, memory, below_ns=below, stop=stopped)
            count("probes", result.probes)
            count("states", result.states)
            lower = result.lower_ns
            if result.best is not None:
                best, best_ns = (chain, result.best), repeats * result.best.period_ns
        lowers.append(repeats * lower)
    if best is None or best_ns is None:
        return None
    lower_ns = min(best_ns, *lowers)
    complete = lower_ns == best_ns
    proven: int | None = None
    if not any(chain.work_ns(0, chain.length) for chain in chains):
        proven = 0  # periods are 1 ns at least, a simulation takes no time
    elif all(take_turns(model, chain.layers, chain.micro_batch) for chain in chains):
        proven = lower_ns
    elif problem.cluster.link_mode != "delay" and complete:
        ordered = sorted(chains, key=lambda chain: chain is not best[0])
        proven = both_ways_bound_ns(problem.mini_batch, ordered, stages, memory, best_ns, count, stopped)
    return Sweep(*best, memory, mini_batch_ns=best_ns, lower_ns=proven, complete=complete)


def _infeasible(problem: Problem, chains: list[Chain], stages: StageRange) -> InfeasibleProblem:
    least, size = min((least_memory(chain, stages), chain.micro_batch) for chain in chains)
    return InfeasibleProblem(
        f"no contiguous plan of {problem.profile.name!r} on {problem.cluster.size} devices fits in "
        f"{problem.cluster.memory_bytes} bytes a device",
        f"the least that one needs is {least} bytes, at micro-batch {size}",
    )


NS = 1e-9


def contiguous_plan(
    model: CostModel, chain: Chain, bounds: tuple[int, ...], live: Sequence[int] | None = None
) -> Plan:
    """Stages [bounds[i], bounds[i + 1]) of the chain on one device each, with `live` micro-batches in flight.

    Devices 0, 1, … on a cluster of one link level, else the last ones (see Chain). Relayed where a tensor
    crosses two of the cuts; where no tensor crosses a cut an order edge keeps the chain.
    """
    cuts = [bound - 1 for bound in bounds[1:-1]]
    stages = len(bounds) - 1
    first_device = 0 if chain.one_level else model.problem.cluster.size - stages
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(
                    model.graph.operators[op].name for ops in chain.layers.operators[first:end] for op in ops
                ),
                devices=(first_device + position,),
                micro_batch=chain.micro_batch,
                in_flight=live[position] * chain.micro_batch if live else 0,
                recompute=chain.recompute,
            )
            for position, (first, end) in enumerate(pairwise(bounds))
        ),
        order_edges=tuple((i, i + 1) for i, cut in enumerate(cuts) if not chain.layers.crossing[cut]),
        routing="relay" if crosses_twice(chain.layers, cuts) else "direct",
    )


def class_conditions(problem: Problem, chain: Chain) -> list[str]:
    """Which plans a search of this chain leaves out, as conditions of its scope: each of them may be faster."""
    pins, graph, layers = problem.pins, problem.profile.graph, chain.layers
    said = ["one device a stage"]
    if pins.recompute is None:
        said.append("nothing recomputed")
    ways = (way for each in problem.profile.on(problem.cluster.devices[0]).operators for way in each.alternatives)
    if any(way.tensor_parallel == 1 and not way.recompute for way in ways):
        said.append("no alternatives")
    free = pins.micro_batch is None and pins.micro_batch_size is None
    if free and len(micro_batch_candidates(problem)) < len(divisors(problem.mini_batch, problem.mini_batch)):
        said.append("profiled micro-batch sizes")
    if len(layers) < len(graph.operators):
        said.append("cuts of single tensors")
    if not all(layers.crossing):
        said.append("stages one after the other")
    if layers.relay:
        said.append("tensors passed on from stage to stage")
    return said


def contiguous_result(model: CostModel, found: Sweep, notices: tuple[str, ...] = ()) -> PlanResult:
    """The plan, its schedule, what it claims and what was proven of it, in seconds for one mini-batch.

    On links that carry both directions at once the plan may run faster than claimed: 1F1B* lets them take turns.
    """
    bounds = found.partition.bounds
    live = [int(group) for group in groups(found.chain.items(bounds), found.partition.period_ns)[::2]]
    plan = contiguous_plan(model, found.chain, bounds, live)
    cluster = model.problem.cluster
    scope = "contiguous, one micro-batch size, "
    scope += "1F1B*" if cluster.link_mode == "half" else "any periodic order"
    scope = ", ".join((scope, *class_conditions(model.problem, found.chain)))
    if not found.chain.one_level:
        scope += ", consecutive devices"
    if found.memory < cluster.memory_bytes:
        scope += ", memory less the reserve"
    optimal = found.lower_ns in (0, found.mini_batch_ns)
    return PlanResult(
        plan=plan,
        schedule=one_f_one_b_star(model, plan),
        scheduler=ONE_F_ONE_B_STAR,
        claimed_s=found.mini_batch_ns * NS,
        claimed_native=float(found.partition.period_ns),
        claimed_unit="ns a micro-batch",
        lower_bound_s=found.lower_ns * NS if found.lower_ns is not None else None,
        bound_scope=scope if found.lower_ns is not None else "",
        termination="optimal" if optimal else "heuristic" if found.complete else "limit",
        notices=(*_notices(model, plan), *notices),
    )


def _notices(model: CostModel, plan: Plan) -> tuple[str, ...]:
    relayed = "the graph is cut in topological order; tensors that skip stages are passed on from stage to stage"
    return (
        *((relayed,) if plan.routing == "relay" else ()),
        *micro_batch_notices(model.problem),
        *idle_devices(model.problem, plan),
    )
