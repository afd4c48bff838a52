"""The tasks of one mini-batch as a job shop: durations, what waits for what, and the memory of each lane."""

from dataclasses import dataclass

from pipebench.algorithms.planning import memory_limits
from pipebench.costs.links import flows
from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_of, micro_batches_of
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Memory of a stage on its lane: for each micro-batch, while one is live, and during a task."""

    each: int
    while_live: int
    workspace: int


@dataclass(frozen=True, slots=True)
class JobShop:
    """Tasks by number, in an order in which each stands behind all that it waits for. Times in ns.

    stage, kind, micro_batch, lane, duration: of each task.
    before: for each task those that it waits for, with the ns from the end of one until its message is there; the
    one before it of its stage and kind, on the same lane, is among them.
    tail: from the end of each task to the end of the mini-batch at least.
    rows: by stage its tasks of each kind, in order of micro-batches.
    most_live: by stage the most micro-batches that it may have in flight.
    stages: by lane its stages. reduce: by lane the ns of its all-reduces, which stand behind all else.
    held: by lane the bytes that it has without micro-batches. limits: by lane the bytes that it may use: less the
    reserve first, then all.
    contended: whether messages wait for each other; else times are those of the simulator.
    """

    stage: tuple[int, ...]
    kind: str
    micro_batch: tuple[int, ...]
    lane: tuple[int, ...]
    duration: tuple[int, ...]
    before: tuple[tuple[tuple[int, int], ...], ...]
    tail: tuple[int, ...]
    rows: tuple[dict[str, tuple[int, ...]], ...]
    most_live: tuple[int, ...]
    stages: tuple[tuple[int, ...], ...]
    reduce: tuple[int, ...]
    memory: tuple[StageBytes, ...]
    held: tuple[int, ...]
    limits: tuple[tuple[int, ...], ...]
    contended: bool


def job_shop(problem: Problem, plan: Plan, split: bool, model: CostModel | None = None) -> JobShop:
    """The tasks of a plan. split: weight gradients are tasks of their own.

    Raises UnsupportedProblem where replicas take micro-batches in turn or the plan has several pipelines.
    """
    if plan.pipelines > 1:
        raise UnsupportedProblem("finite-bnb orders plans of one pipeline; this one has several")
    model = model or CostModel(problem)
    edges = model.messages(plan)
    times = [model.stage_times(stage, plan) for stage in plan.stages]
    held = [model.stage_memory(plan, position, edges) for position in range(len(plan.stages))]
    lanes, lane_of = lanes_of(plan)
    back = INPUT_GRADIENT if split else BACKWARD
    ns = {
        FORWARD: [each.forward for each in times],
        BACKWARD: [each.backward for each in times],
        INPUT_GRADIENT: [each.backward - each.weight_gradient for each in times],
        WEIGHT_GRADIENT: [each.weight_gradient for each in times],
    }
    counts = [micro_batches_of(problem, plan, stage) for stage in plan.stages]
    made = _Numbered(plan, counts)
    waits = _message_ns(model, plan)
    made.sweep(FORWARD, {(a, b): there for (a, b), (there, _) in waits.items()}, None)
    made.sweep(back, {(b, a): home for (a, b), (_, home) in waits.items()}, FORWARD)
    if split:
        made.sweep(WEIGHT_GRADIENT, {}, INPUT_GRADIENT)
    reduce = [0] * len(lanes)
    weights = [0] * len(lanes)
    for lane, time, memory in zip(lane_of, times, held, strict=True):
        reduce[lane] += time.all_reduce
        weights[lane] += memory.held
    lane_of_task = tuple(lane_of[stage] for stage in made.stage)
    duration = tuple(ns[kind][stage] for kind, stage in zip(made.kind, made.stage, strict=True))
    return JobShop(
        stage=tuple(made.stage),
        kind="".join(made.kind),
        micro_batch=tuple(made.micro_batch),
        lane=lane_of_task,
        duration=duration,
        before=tuple(tuple(each) for each in made.before),
        tail=_tails(made.before, duration, [reduce[lane] for lane in lane_of_task]),
        rows=tuple({kind: tuple(row) for kind, row in rows.items()} for rows in made.rows),
        most_live=tuple(
            stage.in_flight // stage.micro_batch or count for stage, count in zip(plan.stages, counts, strict=True)
        ),
        stages=tuple(tuple(stage for stage, at in enumerate(lane_of) if at == lane) for lane in range(len(lanes))),
        reduce=tuple(reduce),
        memory=tuple(StageBytes(each.per_micro_batch, each.while_live, each.workspace) for each in held),
        held=tuple(weights),
        limits=tuple(memory_limits(problem, devices) for devices in lanes),
        contended=any(flow.link is not None or flow.ports for flow in flows(model, plan)),
    )


class _Numbered:
    """Tasks get numbers sweep by sweep."""

    def __init__(self, plan: Plan, counts: list[int]) -> None:
        self._sizes = [stage.micro_batch for stage in plan.stages]
        self._counts = counts
        self.stage: list[int] = []
        self.kind: list[str] = []
        self.micro_batch: list[int] = []
        self.before: list[list[tuple[int, int]]] = []
        self.rows: list[dict[str, list[int]]] = [{} for _ in plan.stages]

    def sweep(self, kind: str, edges: dict[tuple[int, int], int], behind: str | None) -> None:
        """All tasks of a kind, stage by stage along the edges (from, to) with their ns; behind: its own ones."""
        into: list[list[tuple[int, int]]] = [[] for _ in self._counts]
        for (source, target), ns in sorted(edges.items()):
            into[target].append((source, ns))
        left = list(range(len(self._counts)))
        while left:
            free = [stage for stage in left if not any(source in left for source, _ in into[stage])]
            if not free:
                raise UnsupportedProblem("the stages of this plan wait for each other in a circle")
            for stage in free:
                self._row(kind, stage, into[stage], behind)
            left = [stage for stage in left if stage not in free]

    def _row(self, kind: str, stage: int, into: list[tuple[int, int]], behind: str | None) -> None:
        row: list[int] = []
        size = self._sizes[stage]
        for number in range(self._counts[stage]):
            before = [(row[-1], 0)] if row else []
            if behind is not None:
                before.append((self.rows[stage][behind][number], 0))
            for source, ns in into:
                last = ((number + 1) * size - 1) // self._sizes[source]
                before.append((self.rows[source][kind][last], ns))
            row.append(len(self.stage))
            self.stage.append(stage)
            self.kind.append(kind)
            self.micro_batch.append(number)
            self.before.append(before)
        self.rows[stage][kind] = row


def _message_ns(model: CostModel, plan: Plan) -> dict[tuple[int, int], tuple[int, int]]:
    """By pair of stages the longest message there and back; 0 for an order edge."""
    found = dict.fromkeys(stage_edges(model.graph, plan), (0, 0))
    for message in model.messages(plan):
        there, back = found[message.source, message.target]
        found[message.source, message.target] = (
            max(there, model.message_ns(plan, message)),
            max(back, model.message_ns(plan, message, backward=True)),
        )
    return found


def _tails(before: list[list[tuple[int, int]]], duration: tuple[int, ...], reduce: list[int]) -> tuple[int, ...]:
    tail = list(reduce)
    for task in reversed(range(len(before))):
        for other, ns in before[task]:
            tail[other] = max(tail[other], ns + duration[task] + tail[task])
    return tuple(tail)
