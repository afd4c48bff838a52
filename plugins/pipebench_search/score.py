"""What a plan is worth: bounds that cost little, then the suite's schedulers, check and simulator."""

from dataclasses import dataclass

from pipebench.algorithms.planning import memory_limits
from pipebench.check import check_pins, check_plan, check_schedule
from pipebench.costs.estimate import estimate
from pipebench.costs.formula import StageTimes
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_in_turn, micro_batches_of
from pipebench.costs.rings import Ring
from pipebench.domain.errors import PipebenchError
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule
from pipebench.domain.topology import topological_order
from pipebench.hooks.context import Context
from pipebench.simulation.step_time import StepTime
from pipebench_search.plugin import QUICK

WORTH_ORDERING = 1.25
"""Slow schedulers are asked for a plan that a fast one brings within this factor of the best one."""
FEW_STAGES, MANY_STAGES = 6, 12
"""Branch and bound sees few stages through; of many it mostly finds nothing: another pattern is tried first."""
BRANCH, LONG_BRANCH, SHORT_BRANCH = "periodic-bnb", "periodic-bnb[nodes=2000]", "periodic-bnb[nodes=200]"
"""Branch and bound that ends soon: a pattern of many stages takes seconds otherwise."""
FEW_TASKS = 48
"""Of a plan with so few tasks in a mini-batch the best order is searched, in sync."""
TREE = "finite-bnb"
FEW_NODES = 500
"""Of the search for the best order of a plan that may not be looked at again."""
MODULO = "modulo"
LINKED = "greedy[links=true]"
"""Greedy orders whose messages wait for links, as the clock has them."""


def _plain(name: str) -> str:
    """The name of a scheduler without its options."""
    return name.partition("[")[0]


@dataclass(frozen=True, slots=True)
class Scored:
    """A valid plan in its fastest order. ns: of a mini-batch. tight: it uses the reserve."""

    plan: Plan
    schedule: Schedule
    scheduler: str
    ns: int
    tight: bool = False

    @property
    def rank(self) -> tuple[bool, int]:
        """Smaller is better: inside the reserve first."""
        return self.tight, self.ns


class CachedCosts(CostModel):
    """The cost model, whose times of stages are kept: neighbours share most stages.

    So are what operators take and weigh, and the links of rings: other micro-batches and devices share these.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._stages: dict[tuple[object, ...], StageTimes] = {}
        self._computed: dict[tuple[object, ...], tuple[int, int, int]] = {}
        self._weighed: dict[tuple[object, ...], tuple[int, int]] = {}
        self._links: dict[tuple[tuple[tuple[int, int], ...], int, int], Ring] = {}

    def stage_times(self, stage: Stage, plan: Plan | None = None) -> StageTimes:
        """As `CostModel.stage_times`."""
        if stage.sharding or (plan is not None and plan.pipelines > 1):
            return super().stage_times(stage, plan)
        key = (
            (stage.operators, stage.choice, stage.devices)
            + (stage.data_parallel, stage.tensor_parallel, stage.micro_batch, stage.replicas, stage.recompute)
            + (() if plan is None else (plan.copies, plan.devices_used))
        )
        if key not in self._stages:
            self._stages[key] = super().stage_times(stage, plan)
        return self._stages[key]

    def _compute_ns(self, stage: Stage, plan: Plan | None) -> tuple[int, int, int]:
        if stage.sharding:
            return super()._compute_ns(stage, plan)
        key = stage.operators, stage.choice, self._device_type(stage), self.local_samples(stage)
        if key not in self._computed:
            self._computed[key] = super()._compute_ns(stage, plan)
        return self._computed[key]

    def _weights(self, stage: Stage) -> tuple[int, int]:
        if stage.sharding:
            return super()._weights(stage)
        key = stage.operators, stage.choice, self._device_type(stage)
        if key not in self._weighed:
            self._weighed[key] = super()._weights(stage)
        return self._weighed[key]

    def _ring(self, blocks: tuple[tuple[int, int], ...], devices: int, rings: int) -> Ring:
        key = blocks, devices, rings
        if key not in self._links:
            self._links[key] = super()._ring(blocks, devices, rings)
        return self._links[key]


class Scorer:
    """Plans of one problem, judged as the suite judges them.

    thorough: slow schedulers are asked for every plan, and given time.
    """

    def __init__(self, problem: Problem, context: Context, thorough: bool = False) -> None:
        self.problem, self._context, self._thorough = problem, context, thorough
        self.model = CachedCosts(problem)
        self._sync = problem.regime.mode == "sync"

    def guess(self, plan: Plan) -> tuple[int, int] | None:
        """Nanoseconds of a mini-batch: what the plan takes at least, and about. None: it has no times."""
        try:
            about = estimate(self.problem, plan, self.model)
            return (self._least(plan) if self._sync else about), about
        except PipebenchError:
            return None

    def permitted(self, plan: Plan) -> bool:
        """Whether the plan honours the pins, is valid before its tasks are ordered, and may fit in memory."""
        if check_pins(self.problem, plan).status == "invalid":
            return False
        if check_plan(self.problem, plan).status == "invalid" or self.excess_bytes(plan) != 0:
            return False
        return self._context.admits is None or self._context.admits(self.problem, plan)

    def score(self, plan: Plan, below: tuple[bool, int] | None = None, kept: bool = False) -> Scored | None:
        """The plan in its fastest order that is valid; None where there is none that is better than `below`.

        kept: what the plan says of samples in flight stands; else that is up to the schedulers.
        """
        guessed = self.guess(plan)
        if guessed is None or (below is not None and (False, guessed[0]) >= below):
            return None
        self._context.count("plans")
        free = plan if kept else plan.without_in_flight()
        best: Scored | None = None
        fastest: int | None = None
        for name in self._orders(plan):
            if best is not None and best.ns <= guessed[0]:
                break
            far = below is not None and fastest is not None and fastest > WORTH_ORDERING * below[1]
            if far and not self._thorough and _plain(name) not in QUICK:
                continue
            limit = best.rank if best is not None else below
            ns, found = self._under(name, free, limit)
            if ns is not None:
                fastest = ns if fastest is None else min(fastest, ns)
            best = found or best
        return best

    def _under(self, name: str, plan: Plan, limit: tuple[bool, int] | None) -> tuple[int | None, Scored | None]:
        """What a scheduler makes of a plan: its nanoseconds, and the scored plan where it is valid and better."""
        called = name
        if _plain(name) == TREE and limit is not None and not limit[0]:
            called = f"{name.removesuffix(']')},below_ns={limit[1]}]"
        try:
            schedule = self._context.schedule(called, self.problem, plan)
            ns = self._length(plan, schedule, limit)
        except PipebenchError:
            return None, None
        if limit is not None and (False, ns) >= limit:
            return ns, None
        verdict = check_schedule(self.problem, plan, schedule)
        if verdict.status != "valid":
            return ns, None
        found = Scored(plan, schedule, name, ns, verdict.fit == "tight")
        return ns, found if limit is None or found.rank < limit else None

    def reorder(self, scored: Scored, nodes: int) -> Scored | None:
        """The plan in a better order of its tasks, by branch and bound; None where none was found."""
        if not self._free_order(scored.plan):
            return None
        few = len(scored.plan.stages) <= FEW_STAGES
        name = f"{TREE}[nodes={nodes}]" if self._sync else BRANCH if few else SHORT_BRANCH
        return self._under(name, scored.plan.without_in_flight(), scored.rank)[1]

    def as_annealed(self, plan: Plan) -> Scored | None:
        """The plan in greedy order with what it declares in flight, in async in a pattern; None: not valid."""
        self._context.count("plans")
        return self._under(LINKED if self._sync else MODULO, plan, None)[1]

    @property
    def orders_freely(self) -> bool:
        """Whether any order of tasks will do: no scheduler is asked for."""
        return not (self._context.scheduler or self._context.offered)

    def _free_order(self, plan: Plan) -> bool:
        """Whether there are orders of tasks to choose from."""
        return self.orders_freely and len(plan.stages) > 1 and plan.pipelines == 1 and not plan.takes_turns

    def tasks(self, plan: Plan) -> int:
        """Forwards and backwards of a mini-batch."""
        return sum(2 * micro_batches_of(self.problem, plan, stage) for stage in plan.stages)

    def _length(self, plan: Plan, schedule: Schedule, limit: tuple[bool, int] | None) -> int:
        """What the simulator will say. A pattern may run faster than the period that it states."""
        if not isinstance(schedule, PeriodicSchedule):
            return StepTime(plan, schedule).ns(self.problem, self.model)
        count = micro_batches_of(self.problem, plan, plan.stages[0])
        stated = schedule.period_ns * count
        if not self._thorough and limit is not None and (False, stated) >= limit:
            return stated
        trace = self._context.simulate(self.problem, plan, schedule)
        return stated if trace.period_ns is None else trace.period_ns * count

    def _orders(self, plan: Plan) -> list[str]:
        """Schedulers to ask, the fast ones first."""
        context = self._context
        if context.scheduler:
            return [context.scheduler]
        if context.offered:
            return sorted(context.offered, key=lambda name: _plain(name) not in QUICK)
        stages = plan.stages
        kind = placement_kind_of([stage.devices for stage in stages], plan.pipelines)
        equal = len({stage.micro_batch for stage in stages}) == 1
        if not self._sync:
            if plan.takes_turns:
                return ["1f1b-rr"]
            if len(stages) == 1:
                return ["1f1b*"]
            branch = BRANCH if self._thorough else LONG_BRANCH if len(stages) <= FEW_STAGES else SHORT_BRANCH
            last = [MODULO, branch] if len(stages) > MANY_STAGES else [branch]
            return ["1f1b*", "1f1b-rr", *last] if kind == "apart" else ["1f1b*", *last]
        if len(stages) == 1:
            return ["1f1b"]
        if kind == "apart":
            even = equal and not plan.takes_turns
            return [
                "1f1b",
                "1f1b[warmup=+2]",
                *(("zb-h1", "gpipe", LINKED, "greedy") if even else ("kfkb", "gpipe")),
                *self._tree(plan),
            ]
        first = {"in-turn": ["interleaved-1f1b"], "v": ["zb-v"], "mirrored": ["chimera"]}.get(kind, [])
        return [*first, LINKED, "greedy", *self._tree(plan)]

    def _tree(self, plan: Plan) -> list[str]:
        few = self._free_order(plan) and self.tasks(plan) <= FEW_TASKS
        return [f"{TREE}[nodes={FEW_NODES}]"] if few else []

    def _least(self, plan: Plan) -> int:
        """What no order of the plan is below, in sync.

        A lane runs all tasks of its stages. The first forward of a stage waits for one of each stage in a path to
        it; behind its last input gradient come those of that path, one after the other.
        """
        model, stages = self.model, plan.stages
        times = [model.stage_times(stage, plan) for stage in stages]
        runs = [micro_batches_of(self.problem, plan, stage) for stage in stages]
        after: list[list[int]] = [[] for _ in stages]
        for before, behind in sorted({(m.source, m.target) for m in model.messages(plan)} | set(plan.order_edges)):
            after[before].append(behind)
        head, tail = [0] * len(stages), [0] * len(stages)
        for at in topological_order(after, [str(at) for at in range(len(stages))]):
            there = head[at] + times[at].forward
            back = tail[at] + times[at].backward - times[at].weight_gradient
            for behind in after[at]:
                head[behind], tail[behind] = max(head[behind], there), max(tail[behind], back)
        most = 0
        load: dict[int, int] = {}
        first: dict[int, int] = {}
        _, lanes_of = lanes_in_turn(plan)
        for at, (time, count, lanes) in enumerate(zip(times, runs, lanes_of, strict=True)):
            if self.problem.overlap:
                continue
            each = -(-count // len(lanes))
            gradients = each * (time.period - time.weight_gradient)
            most = max(most, head[at] + gradients + tail[at], head[at] + each * time.period + time.all_reduce)
            for lane in lanes:
                load[lane] = load.get(lane, 0) + (count // len(lanes)) * time.period + time.all_reduce
                first[lane] = min(first.get(lane, head[at]), head[at])
        return max([most, *(load[lane] + first[lane] for lane in load)])

    def excess_bytes(self, plan: Plan) -> int | None:
        """What devices lack to hold their stages with one micro-batch in flight; None: not known."""
        model = self.model
        try:
            edges = model.messages(plan)
            memory = [model.stage_memory(plan, at, edges) for at in range(len(plan.stages))]
            sets, lanes_of = lanes_in_turn(plan)
        except PipebenchError:
            return None
        held, live = [0] * len(sets), [0] * len(sets)
        for lanes, each in zip(lanes_of, memory, strict=True):
            for lane in lanes:
                held[lane] += each.held
                live[lane] = max(live[lane], each.per_micro_batch + each.while_live + each.workspace)
        limits = [memory_limits(self.problem, devices)[-1] for devices in sets]
        return sum(max(0, a + b - limit) for a, b, limit in zip(held, live, limits, strict=True))
