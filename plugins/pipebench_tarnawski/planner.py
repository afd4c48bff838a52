"""The planner `tarnawski`: loads of accelerators and CPUs as the stages of a pipeline."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from pipebench.algorithms.coarse import COARSER
from pipebench.algorithms.fitting import excess_bytes, search_within
from pipebench.algorithms.micro_batches import micro_batch_candidates, pinned_sizes
from pipebench.algorithms.planning import idle_devices, memory_limits, refuse_recomputation
from pipebench.costs.formula import ENDLESS, Formula
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_tarnawski.memory import memory_tables, operator_bytes
from pipebench_tarnawski.node_costs import CPU, node_costs
from pipebench_tarnawski.plugin import TarnawskiPlannerOptions
from pipebench_tarnawski.search import COUNTERS, LoadSearch, LoadSplit


@dataclass(frozen=True, slots=True)
class _Room:
    """What loads may hold: bytes of a CPU and of an accelerator; one: a single micro-batch is in flight."""

    limits: tuple[float, float]
    one: bool


def plan(problem: Problem, context: Context) -> PlanResult:
    """The split of the smallest largest load among those that fit, at the largest micro-batch that has one.

    Raises UnsupportedProblem for pins that it cannot honour and for too many downsets, InfeasibleProblem when
    nothing fits.
    """
    options = context.options
    assert isinstance(options, TarnawskiPlannerOptions)
    refuse_unsupported(problem)
    tried: dict[int, _SizeSearch] = {}
    for room in _rooms(problem, options):
        for size in _sizes(problem, options):
            context.check_deadline()
            if size not in tried:
                tried[size] = _SizeSearch(problem, size, options, context)
            split, exact = tried[size].best(room, context)
            if split is not None:
                scope = _scope(room, options) if exact else ""
                return _result(problem, split, size, scope)
    raise InfeasibleProblem(
        f"tarnawski finds no split of the operators over {len(_accelerators(problem))} accelerators and "
        f"{len(_cpus(problem))} CPUs that fits (memory={options.memory}, "
        f"micro-batch {', '.join(map(str, tried))})",
        "use more devices or memory",
    )


def _rooms(problem: Problem, options: TarnawskiPlannerOptions) -> Iterator[_Room]:
    """What to plan for, in the order to try: less the reserve, then the whole memory.

    async: with as many in flight as 1F1B holds, then with the one that 1F1B* needs at least.
    """
    accelerators, cpus = _accelerators(problem), _cpus(problem)
    of_accelerators = memory_limits(problem, accelerators or None)
    of_cpus = memory_limits(problem, cpus or None)
    released = options.memory == "released"
    for one in (False, True) if problem.regime.mode == "async" and not released else (released,):
        for limit, cpu_limit in zip(of_accelerators, of_cpus, strict=True):
            yield _Room((inf if released else float(cpu_limit), float(limit)), one)


class _SizeSearch:
    """The search at one micro-batch."""

    def __init__(self, problem: Problem, size: int, options: TarnawskiPlannerOptions, context: Context) -> None:
        self.problem, self.size, self.options = problem, size, options
        self.amounts = operator_bytes(problem, size, options.memory)
        needed = self.amounts.most(min(problem.cluster.size, self._in_flight))
        room = next(_rooms(problem, options))
        self.roomy = bool((needed <= room.limits).all())
        self.search = LoadSearch(
            node_costs(problem, size, self.amounts.nothing | self.roomy),
            options.linearize,
            options.max_downsets,
            f"{COARSER}; or use tarnawski[linearize=true], which cuts one order of the operators, or raise "
            "max_downsets (the search grows with its square)",
        )
        context.count("downsets", self.search.downsets)

    @property
    def _in_flight(self) -> int:
        """Micro-batches that there are at once: without a flush those of the next mini-batches follow at once."""
        return self.problem.mini_batch // self.size if self.problem.regime.mode == "sync" else ENDLESS

    def best(self, room: _Room, context: Context) -> tuple[LoadSplit | None, bool]:
        """The split of the smallest largest load that fits (None where none does), and whether it is that.

        Bytes of weights are rounded for each parameter here and for each load by the suite. Where that makes a
        difference, what fits is searched for with less memory.
        """
        problem, search = self.problem, self.search
        most_live = 1 if room.one else self._in_flight
        memory = memory_tables(problem, search.figures, self.amounts, search.tables.rows, most_live)
        if self.roomy:
            memory = memory._replace(plain=True)
        before = search.counters.copy()
        exact = not self.options.linearize

        def within(limit_bytes: float) -> LoadSplit | None:
            nonlocal exact
            less = room.limits[1] - limit_bytes
            exact &= less == 0
            limits = (room.limits[0] - less, limit_bytes)
            return search.best(
                len(_accelerators(problem)), len(_cpus(problem)), memory, limits, context.out_of_time
            )

        def over(split: LoadSplit) -> int:
            if self.options.memory == "released":
                return 0
            made = _plan(problem, split, self.size)
            limits = [int(room.limits[0 if load.cpu else 1]) for load in split.loads]
            live = [1] * len(split.loads) if room.one else None
            return excess_bytes(problem, made, limits, live)

        found = search_within(room.limits[1], within, over)
        for name, amount in zip(COUNTERS, search.counters - before, strict=True):
            context.count(name, int(amount))
        return found, exact and found is not None and not found.stopped


def _scope(room: _Room, options: TarnawskiPlannerOptions) -> str:
    if options.memory == "released":
        return "largest load in Tarnawski's model at this micro-batch"
    flight = "one micro-batch" if room.one else "what 1F1B holds"
    return f"largest load in Tarnawski's model, of splits that fit with {flight} in flight, at this micro-batch"


def _result(problem: Problem, split: LoadSplit, size: int, scope: str) -> PlanResult:
    made = _plan(problem, split, size)
    return PlanResult(
        plan=made,
        claimed_s=split.seconds * (problem.mini_batch // size) + _update_s(problem, size),
        claimed_native=split.seconds * 1e3,
        claimed_unit="ms a micro-batch (largest load)",
        bound_scope=scope,
        termination="limit" if split.stopped else "optimal" if scope else "heuristic",
        notices=idle_devices(problem, made),
    )


def _accelerators(problem: Problem) -> list[int]:
    return [device for device, kind in enumerate(problem.cluster.devices) if kind != CPU]


def _cpus(problem: Problem) -> list[int]:
    return [device for device, kind in enumerate(problem.cluster.devices) if kind == CPU]


def _sizes(problem: Problem, options: TarnawskiPlannerOptions) -> Iterator[int]:
    """The largest micro-batch first; smaller ones for memory=suite alone, those whose times are known."""
    first = micro_batch(problem)
    yield first
    pinned = pinned_sizes(problem) is not None
    if options.memory == "suite" and not pinned:
        yield from (size for size in reversed(micro_batch_candidates(problem)) if size < first)


def refuse_unsupported(problem: Problem) -> None:
    """Raise UnsupportedProblem for pins that these plans cannot express, and for two kinds of accelerators."""
    pins = problem.pins
    for name in ("tensor_parallel", "data_parallel", "virtual_stages"):
        if (getattr(pins, name) or 1) > 1:
            raise UnsupportedProblem(f"tarnawski has no {name}, {getattr(pins, name)} is pinned")
    refuse_recomputation(problem, "tarnawski")
    if pins.pipeline is not None:
        raise UnsupportedProblem(f"tarnawski chooses the number of stages, {pins.pipeline} are pinned")
    kinds = sorted(set(problem.cluster.devices) - {CPU})
    if len(kinds) > 1:
        raise UnsupportedProblem(
            f"tarnawski plans for one type of accelerator and for type {CPU!r}; these are {', '.join(kinds)}"
        )


def micro_batch(problem: Problem) -> int:
    """The pinned one, or the largest profiled one that divides the mini-batch; the mini-batch where none does."""
    if pinned_sizes(problem) is not None:
        return micro_batch_candidates(problem)[0]
    profiled = problem.profile.on(problem.cluster.devices[0]).micro_batches
    return max((size for size in profiled if problem.mini_batch % size == 0), default=problem.mini_batch)


def _update_s(problem: Problem, size: int) -> float:
    """Seconds that every stage spends on its update once a mini-batch, the same for every load."""
    formula = Formula(problem.regime, problem.mini_batch)
    update_ns = formula.update_ns(0)
    if problem.regime.mode == "async":
        update_ns = formula.update_share_ns(update_ns, size) * (problem.mini_batch // size)
    return update_ns / NS_PER_S


def _plan(problem: Problem, split: LoadSplit, size: int) -> Plan:
    free, idle = iter(_accelerators(problem)), iter(_cpus(problem))
    operators = problem.profile.graph.operators
    stages = tuple(
        Stage(
            operators=tuple(operators[operator].name for operator in load.operators),
            devices=(next(idle if load.cpu else free),),
            micro_batch=size,
        )
        for load in split.loads
    )
    if problem.regime.mode == "async":
        return Plan(stages=stages, routing="relay" if len(stages) > 1 else "direct")
    return Plan(stages=stages, order_edges=tuple((i, i + 1) for i in range(len(stages) - 1)))
