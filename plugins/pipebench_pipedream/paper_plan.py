"""`cost=paper` and `cost=released`: the partition by PipeDream's own cost model, as a plan."""

from math import inf, prod

from pipebench.algorithms.micro_batches import micro_batch_candidates, refuse_micro_batch_size
from pipebench.costs.model import CostModel
from pipebench.domain.cluster import Cluster, as_one
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_pipedream.in_flight import chained, in_flight_of
from pipebench_pipedream.order import linear_order
from pipebench_pipedream.paper_costs import Units, join_branches, operator_units
from pipebench_pipedream.paper_model import Level, LevelPart, LevelSolution, ModelRules, bisect, solve
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from pipebench_pipedream.states import Sent, States, states_of


def plan(problem: Problem, options: PipeDreamPlannerOptions, context: Context) -> PlanResult:
    """The plan of the smallest bottleneck at one micro-batch, by the formulas of the paper or of the code.

    claimed_native: that bottleneck in seconds for one micro-batch.
    Raises UnsupportedProblem for options and pins that do not go together, InfeasibleProblem where nothing fits.
    """
    _refuse(problem, options)
    size = _micro_batch(problem, options)
    released = options.cost == "released"
    context.check_deadline()
    units = operator_units(CostModel(problem), size)
    if options.branches == "joined":
        units = join_branches(units)
    charged = options.communication == "charged" or (options.communication is None and not released)
    sent: Sent = "free" if not charged else "antichain" if released else "cut"
    states = states_of(units, options.cut_states, _order(problem, options), sent)
    context.report(0.5, f"{states.count} states")
    context.check_deadline()
    levels = nested_levels(problem.cluster) if options.levels == "nested" else [_flat(problem.cluster)]
    rules = ModelRules(
        released=released,
        charged=charged,
        idle=options.idle,
        counts=_counts(problem, options, size),
        limit_bytes=_limit(problem, options),
    )
    found = bisect(states, levels[0], rules) if options.form == "bs" else solve(states, levels, rules)
    context.count("downsets", states.count)
    if found is None:
        raise InfeasibleProblem(
            f"no partition of {states.count} states over {problem.cluster.size} devices keeps to "
            f"cost={options.cost}, memory={options.memory_reading}, replication={options.replication}"
            + ("" if options.idle else "; every device must be used (idle=true lifts it)")
        )
    context.count("states", found.states)
    context.count("transitions", found.transitions)
    made = _plan(problem, options, units, states, levels, found, size)
    return PlanResult(
        plan=made,
        claimed_s=found.bottleneck_s * problem.mini_batch / size,
        claimed_native=found.bottleneck_s,
        claimed_unit="s a micro-batch (bottleneck)",
        termination="heuristic",
        notices=_notices(problem, options, size),
    )


def nested_levels(cluster: Cluster) -> list[Level]:
    """The link levels, innermost first, each with how many groups of the level inside it one group holds.

    Raises UnsupportedProblem where groups do not divide each other or the number of devices.
    """
    levels: list[Level] = []
    inside = 1
    for position, level in enumerate(cluster.levels):
        group = min(level.group, cluster.size)
        if group % inside or cluster.size % group:
            raise UnsupportedProblem(
                f"pipedream[levels=nested] needs whole groups: level {level.name!r} joins {group} devices, of "
                f"{inside} inside, of {cluster.size} in all",
                "use levels=flat, or devices in whole groups",
            )
        if group > inside or position == len(cluster.levels) - 1:
            levels.append(Level(group // inside, level.bandwidth_bytes_s))
            inside = group
    return [level for level in levels if level.machines > 1] or levels[:1]


def _flat(cluster: Cluster) -> Level:
    return Level(cluster.size, as_one(cluster.levels).bandwidth_bytes_s)


def _refuse(problem: Problem, options: PipeDreamPlannerOptions) -> None:
    what = f"pipedream[cost={options.cost}]"
    if problem.pins.pipeline is not None:
        raise UnsupportedProblem(f"{what} chooses the number of stages, {problem.pins.pipeline} are pinned")
    if options.branches == "joined" and options.cut_states == "chain":
        raise UnsupportedProblem(f"{what}: branches=joined is for states=antichain, a chain has an operator order")
    if options.form == "bs" and options.levels == "nested":
        raise UnsupportedProblem(f"{what}: form=bs knows one link level", "use levels=flat or form=k")
    if options.form == "bs" and options.idle:
        raise UnsupportedProblem(f"{what}: form=bs uses every device", "use form=k with idle=true")
    if options.memory_reading == "p" or (options.memory_reading == "released" and options.cost == "paper"):
        raise UnsupportedProblem(f"{what} has no memory={options.memory_reading}")


def _micro_batch(problem: Problem, options: PipeDreamPlannerOptions) -> int:
    """The pinned one; else the largest profiled size that divides the mini-batch; else the mini-batch."""
    pins = problem.pins
    if pins.micro_batch_size is not None and options.replicas == "split" and options.replication != "none":
        if pins.data_parallel is None:
            refuse_micro_batch_size(f"pipedream[cost={options.cost}] with replicas in number open", problem)
        return micro_batch_candidates(problem, [pins.data_parallel or 1])[0]
    if pins.micro_batch is not None or pins.micro_batch_size is not None:
        return micro_batch_candidates(problem)[0]
    sizes = problem.profile.on(problem.cluster.devices[0]).micro_batches
    return max((size for size in sizes if problem.mini_batch % size == 0), default=problem.mini_batch)


def _order(problem: Problem, options: PipeDreamPlannerOptions) -> tuple[int, ...]:
    return linear_order(problem.profile.graph, options.order) if options.cut_states == "chain" else ()


def _counts(problem: Problem, options: PipeDreamPlannerOptions, micro_batch: int) -> tuple[int, ...]:
    if problem.pins.data_parallel is not None:
        return (problem.pins.data_parallel,)
    most = problem.cluster.size if options.replicas == "round_robin" else min(problem.cluster.size, micro_batch)
    if options.replication == "none":
        most = 1
    return tuple(range(1, most + 1))


def _limit(problem: Problem, options: PipeDreamPlannerOptions) -> float:
    """The released code checks memory only where it is asked to."""
    if options.cost == "released" and options.memory_reading != "released":
        return inf
    return float(int(problem.cluster.memory_bytes * (1 - problem.pins.reserve)))


def _plan(
    problem: Problem,
    options: PipeDreamPlannerOptions,
    units: Units,
    states: States,
    levels: list[Level],
    found: LevelSolution,
    micro_batch: int,
) -> Plan:
    graph = problem.profile.graph
    rank = {operator: place for place, operator in enumerate(graph.topological)}
    placed = [False] * units.count
    chosen: list[tuple[tuple[str, ...], LevelPart]] = []
    for part in found.parts:
        own = [unit for unit in range(units.count) if states.holds[part.end, unit] and not placed[unit]]
        for unit in own:
            placed[unit] = True
        operators = sorted((op for unit in own for op in units.members[unit]), key=rank.__getitem__)
        if operators:
            chosen.append((tuple(graph.operators[op].name for op in operators), part))
    count, micro_batches = len(chosen), problem.mini_batch // micro_batch
    sequential = problem.regime.mode == "sync" and options.execution == "sequential"
    kept = in_flight_of([prod(part.replicas) for _, part in chosen], micro_batches, options.replicas)
    stages = tuple(
        Stage(
            operators=operators,
            devices=_devices(part, levels),
            data_parallel=prod(part.replicas),
            micro_batch=micro_batch,
            replicas=options.replicas if prod(part.replicas) > 1 else "split",
            in_flight=kept[position] * micro_batch if sequential else 0,
        )
        for position, (operators, part) in enumerate(chosen)
    )
    relay = problem.regime.mode == "async" and _needs_relay(problem, stages)
    return Plan(
        stages=stages,
        order_edges=chained(count) if sequential else (),
        routing="relay" if relay else "direct",
    )


def _devices(part: LevelPart, levels: list[Level]) -> tuple[int, ...]:
    """Ids of all replicas: on every level those machines that the part has there."""
    devices, size = [0], 1
    for level, replicas, first in zip(levels, part.replicas, part.offsets, strict=True):
        devices = [device + size * (first + each) for each in range(replicas) for device in devices]
        size *= level.machines
    return tuple(sorted(devices))


def _needs_relay(problem: Problem, stages: tuple[Stage, ...]) -> bool:
    """Whether the stages form a chain only because the plan lists them so."""
    graph = problem.profile.graph
    stage_of = {name: position for position, stage in enumerate(stages) for name in stage.operators}
    spans = {
        (stage_of[graph.operators[producer].name], stage_of[graph.operators[reader].name])
        for producer, readers in zip(graph.producers, graph.consumers, strict=True)
        if producer >= 0
        for reader in readers
    }
    crossing = {(tail, head) for tail, head in spans if tail != head}
    return crossing != {(position, position + 1) for position in range(len(stages) - 1)}


def _notices(problem: Problem, options: PipeDreamPlannerOptions, micro_batch: int) -> tuple[str, ...]:
    notices: list[str] = []
    if problem.regime.mode == "sync" and micro_batch == problem.mini_batch:
        notices.append("one micro-batch a mini-batch: in sync nothing overlaps; async is PipeDream's own regime")
    if options.cost == "released" and options.memory_reading != "released":
        notices.append(
            "memory was not checked, as the released optimizer does unless asked (memory=released does)"
        )
    return tuple(notices)
