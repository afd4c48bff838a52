"""A proven bound on a class of plans: stages in a row, each of consecutive operators on devices of its own."""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from msgspec.structs import replace as replace_struct

from pipebench.bounds.operators import divisors
from pipebench.bounds.rows_of_stages import Frame, Row, possible
from pipebench.bounds.stage_choices import Line
from pipebench.bounds.stage_figures import FAR
from pipebench.costs.messages import messages
from pipebench.costs.quantise import NS_PER_S
from pipebench.costs.sharded_stage import is_sharded
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule

ClassKind = Literal["memory", "messages", "pipeline"]
CLASS = "stages in a row, each of consecutive operators on devices of its own, of one micro-batch size"
PLAIN = "nothing recomputed"
"""The class in words, as rows name it; and what is said besides of the smaller class."""
MOST_STATES, MOST_DEVICES = 2**21, 32
"""Squared operators times devices, and devices, of the largest problems that are bounded."""
FEW = 24
"""Runs into which the operators are cut for a first time that is not below the bound."""
CLOSE = 20
"""A bound is closed in on to one part in 2^20."""


@dataclass(frozen=True, slots=True)
class ClassBound:
    """No plan of the class needs less than `ns` for one mini-batch.

    kind: what binds: without limits of memory, or without messages, the argument gives less.
    """

    ns: int
    kind: ClassKind

    @property
    def value(self) -> float:
        """Seconds."""
        return self.ns / NS_PER_S


def class_bound(problem: Problem, at_least_ns: int = 0, recomputes: bool = True) -> ClassBound | None:
    """The least time of plans of the class, over all micro-batches, replicas, degrees, ways and recomputation that
    the pins allow: in sync under any schedule, in async under any pattern that repeats.

    at_least_ns: a bound that is known. recomputes: False for the smaller class of plans that recompute nothing.
    None: no bound is computed (`unbounded`), or no plan of the class fits.
    Proofs: docs/explanation/class-bounds.md.
    """
    if unbounded(problem):
        return None
    if not recomputes and problem.pins.recompute is None:
        problem = replace_struct(problem, pins=replace_struct(problem.pins, recompute="none"))
    line = Line(problem)
    frames = [Frame.of(line, size) for size in micro_batches(problem)]
    # With few of the cuts there are fewer plans: the least time that is left for them is not below the bound.
    first = [(_least_ns(frame.row(parts=FEW), at_least_ns), frame) for frame in frames]
    known = [found for found, _ in first if found is not None]
    best, where = (min(known) + (min(known) >> CLOSE) + 1 if known else FAR), None
    for _, frame in sorted(first, key=lambda each: FAR if each[0] is None else each[0]):
        most_ns = best if where is None else best - 1
        found = _least_ns(frame.row(most_ns), at_least_ns, most_ns)
        if found is not None:
            best, where = found, frame
    if where is None:
        return None
    return ClassBound(best, _what_binds(where, best - 1, at_least_ns))


def unbounded(problem: Problem) -> str:
    """Why no bound over the class is computed, in a few words; '' where one is."""
    operators, devices = len(problem.profile.graph.operators), problem.cluster.size
    if len(set(problem.cluster.devices)) > 1:
        return "devices are of several types"
    if problem.pins.virtual_stages not in (None, 1):
        return "several stages on a device are pinned"
    if operators * operators * devices > MOST_STATES or devices > MOST_DEVICES:
        return f"{operators} operators on {devices} devices are too many"
    return ""


def micro_batches(problem: Problem) -> list[int]:
    """The micro-batch sizes that the pins leave."""
    pinned = problem.pins.micro_batch
    return divisors(problem.mini_batch) if pinned is None else [pinned]


def in_class(problem: Problem, plan: Plan, schedule: Schedule) -> bool:
    """Whether a valid plan is of the class.

    In async its schedule is a pattern that repeats.
    One pipeline, not copied, with one micro-batch size; no operator is split by its dims; the operators of each
    stage follow each other in `OperatorGraph.topological`; each stage reads from the one before it; no device has
    two stages.
    """
    if plan.copies > 1 or plan.pipelines > 1 or len({stage.micro_batch for stage in plan.stages}) > 1:
        return False
    if problem.regime.mode == "async" and not isinstance(schedule, PeriodicSchedule):
        return False
    devices = [device for stage in plan.stages for device in stage.devices]
    if len(set(devices)) < len(devices) or any(is_sharded(stage) for stage in plan.stages):
        return False
    graph = problem.profile.graph
    place = {graph.operators[operator].name: at for at, operator in enumerate(graph.topological)}
    spans = sorted(
        (min(places), max(places) + 1, len(places), position)
        for position, stage in enumerate(plan.stages)
        for places in [[place[name] for name in stage.operators]]
    )
    if spans[0][0] != 0 or spans[-1][1] != len(place):
        return False
    if any(end - first != number for first, end, number, _ in spans):
        return False
    sent = {(message.source, message.target) for message in messages(graph, plan)}
    return all(here[1] == there[0] and (here[3], there[3]) in sent for here, there in pairwise(spans))


def recomputes(problem: Problem, plan: Plan) -> bool:
    """Whether a stage, or an operator by its way, runs anything again."""
    index = problem.profile.graph.index
    for stage in plan.stages:
        costs = problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
        chosen = [(name, way) for name, way in zip(stage.operators, stage.choice, strict=False) if way]
        if stage.recompute != "none" or any(costs[index[name]].alternative(way).recompute for name, way in chosen):
            return True
    return False


def _least_ns(row: Row, at_least_ns: int, most_ns: int = FAR) -> int | None:
    """A time that no plan with the row's micro-batch is below; None where none takes at most `most_ns` or fits.

    The least time that the conditions leave; above 2^20 ns to one part in 2^20.
    """
    low, high = at_least_ns - 1, min(most_ns, longest_ns(row))
    if high <= low or not possible(row, high):
        return None
    step = max(1, low >> 6)
    while low + step < high:
        if possible(row, low + step):
            high = low + step
        else:
            low, step = low + step, 2 * step
    while high - low > max(1, low >> CLOSE):
        middle = (low + high) // 2
        if possible(row, middle):
            high = middle
        else:
            low = middle
    if row.problem.regime.mode == "async":  # whole periods
        return -(-(low + 1) // row.micro_batches) * row.micro_batches
    return low + 1


def longest_ns(row: Row) -> int:
    """A time at which memory alone decides: one micro-batch after the other, with every message and update."""
    rows, places = row.rows, row.places
    each = int(rows.both.max(initial=0)) * places + int(row.messages.down[1].sum() + row.messages.up[1].sum())
    return row.micro_batches * (2 * each + 1) + places * (1 + int(rows.update.max(initial=0)))


def _what_binds(frame: Frame, time_ns: int, at_least_ns: int) -> ClassKind:
    """What makes a time impossible for plans with the micro-batch of the bound."""
    if time_ns < at_least_ns:
        return "pipeline"
    if possible(frame.row(time_ns, memory=False), time_ns):
        return "memory"
    row = frame.row(time_ns)
    return "messages" if possible(replace(row, messages=row.messages.without()), time_ns) else "pipeline"
