"""The least time that any plan needs for one mini-batch."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipebench.bounds.by_group.groups import groups_proof, is_small
from pipebench.bounds.by_group.layers import layers_proof
from pipebench.bounds.links import links_proof
from pipebench.bounds.operators import (
    Cut,
    Ways,
    busy_ns,
    crossing_ns,
    devices_of_a_plan,
    every_stage_ns,
    freely_split,
    least,
    least_part,
    most_parts,
    update_ns,
)
from pipebench.bounds.search import bounds_of
from pipebench.bounds.shared import shared
from pipebench.bounds.spine import before_each
from pipebench.costs.quantise import NS_PER_S, IntArray
from pipebench.domain.problem import Problem

TimeKind = Literal["work", "operator", "path", "reduce", "fill", "memory", "links", "groups", "layers"]


@dataclass(frozen=True, slots=True)
class TimeBound:
    """No plan needs less than `ns` for one mini-batch.

    kind: the argument that gives the largest bound.
    parts: the bound of each argument, in ns.
    operator: the operator at which `operator` or `path` is largest, else ''.
    """

    ns: int
    kind: TimeKind
    parts: dict[TimeKind, int]
    operator: str = ""

    @property
    def value(self) -> float:
        """Seconds."""
        return self.ns / NS_PER_S


def time_bound(problem: Problem, split: bool = False) -> TimeBound:
    """The largest of all bounds, over all plans that honour the pins and fit into memory.

    `work`, `operator` and, in sync, `path` take memory as unlimited; `reduce`, in sync `fill`, and `memory` count
    more and more of what operators share (`pipebench.bounds.shared`), and are left out where no plan fits. `links`
    (`pipebench.bounds.links`), `groups` and `layers` (`pipebench.bounds.by_group`) are there where they are above
    all others.
    Over plans that run every operator on one device of a replica, or by an alternative; split: over plans that
    cut its dims among the devices as well (see `pipebench.bounds.operators`): then the first three alone.

    Holds for the time that the cost model gives to any valid plan under any schedule: sync the length of an
    iteration, async mini_batch / (copies x micro_batch) periods, or the length of a finite schedule. All but
    `links` and `groups` count no transfers, which may be overlapped or avoided. GraphPipe notes, section 7, made
    per operator, because stages may differ in micro-batch.

    Raises InfeasibleProblem when the pins leave no plan.
    """
    graph = problem.profile.graph
    problem = freely_split(problem) if split else problem
    parts: dict[TimeKind, int] = {"work": work_ns(problem, split)}
    parts["operator"], slowest = operator_ns(problem, split)
    where: dict[TimeKind, str] = {"operator": graph.operators[slowest].name}
    if problem.regime.mode == "sync":
        parts["path"], through = path_ns(problem, split)
        where["path"] = graph.operators[through].name
    if not split:
        parts |= of_shared(problem, parts)
    kind = max(parts, key=lambda name: parts[name])
    return TimeBound(parts[kind], kind, parts, where.get(kind, ""))


def of_shared(problem: Problem, known: dict[TimeKind, int]) -> dict[TimeKind, int]:
    """The bounds `reduce`, in sync `fill`, and `memory`, each at least the one before; none where no plan fits.
    Then `links`, and `groups` for small problems, `layers` for others, each where it is above all before it.

    known: the bounds that are computed already, `work` among them.
    """
    found = shared(problem)
    if found is None:
        return {}
    names: list[TimeKind] = ["reduce", "fill", "memory"] if found.lasting else ["reduce", "memory"]
    parts = dict(zip(names, (bound for bound, _ in bounds_of(found, known["work"])), strict=True))
    links = links_proof(problem, found, max(*known.values(), *parts.values()))
    if links is not None:
        parts["links"] = links.claimed_ns
    most = max(*known.values(), *parts.values())
    if is_small(problem):
        groups = groups_proof(problem, found.every_ns, most)
        return parts if groups is None else {**parts, "groups": groups.claimed_ns}
    layers = layers_proof(problem, found, most)
    return parts if layers is None else {**parts, "layers": layers.claimed_ns}


def work_ns(problem: Problem, split: bool = False) -> int:
    """All device time, shared evenly.

    Proof. A stage with d replicas of t devices in each of c pipelines, those of all copies, keeps c d t devices
    busy, each for the sum over its operators of runs x time; replicas in turn keep t devices busy for each
    micro-batch. So an operator alone takes at least the minimum over cuts and alternatives of what all replicas
    compute x devices of a replica x time, wherever it stands, and device times of
    different operators add up: on one device tasks run one after the other, or in pairs, for which `busy_ns`
    allows, and a clone, recomputation and all-reduce only add. Besides, each device that is used runs what every
    stage runs once a mini-batch, C. Hence U <= D used devices that work for T ns offer U T >= sum + U C,
    T >= sum / D + C, and T is an integer. split: parts of an operator take no less than the whole, but what a pair
    hides is rounded on each device.
    """

    def device_ns(rows: Ways, cut: Cut) -> IntArray:
        whole = busy_ns(problem, rows, cut)
        if split and problem.overlap:
            whole = np.maximum(whole - (most_parts(problem, cut) - 1), 0)
        return cut.computed * rows.devices * whole

    total = int(sum(least(problem, device_ns).tolist()))
    return -(-total // devices_of_a_plan(problem)) + every_stage_ns(problem)


def operator_ns(problem: Problem, split: bool = False) -> tuple[int, int]:
    """One operator in its lane: the bound and the operator that gives it.

    Proof. The lane of a stage, of r replicas in turn the busiest (`Cut.busiest_ns`), runs, for each of its
    micro-batches, a forward and a backward that include the
    operator's, one after the other (in pairs: `busy_ns`), and the update of at least this operator's weights,
    which with replicas is their all-reduce (sync: a task of the lane; async: spread over the backwards). The
    fastest link level that so many devices may span is charged; an all-reduce grows with its bytes, an update
    with the all-reduce. split: what every stage runs for its update.
    """

    def lane_ns(rows: Ways, cut: Cut) -> IntArray:
        update = every_stage_ns(problem) if split else update_ns(problem, rows, cut)
        return cut.busiest_ns(problem, busy_ns(problem, rows, cut, split)) + update

    lanes = least(problem, lane_ns)
    return int(lanes.max()), int(lanes.argmax())


def path_ns(problem: Problem, split: bool = False) -> tuple[int, int]:
    """The longest path, with all micro-batches of one operator on it: the bound and that operator. Sync only.

    Proof. Let o be an operator and u_1, …, u_k a path to it. Of one micro-batch let f(u) be the least forward,
    c(u) the least forward plus input gradient, w(u) the least forward plus backward: a backward may be split,
    then the input gradient alone goes upstream and the weight gradient runs when its lane has time. The first
    forward of o's lane waits for a forward of each u_i in an earlier stage of the same pipeline (C1), on a sample
    that it covers, one after the other; those u_i that are in o's stage add to the stage's work instead, which
    is more. From there:
    - o's lane has all forwards and backwards of o before it, and its update:
      T >= f(u_1) + … + f(u_k) + runs x time of o + update of o.
    - Between the first forward and the last input gradient of o's lane lie all its forwards and input gradients.
      Then come, one after the other, an input gradient of each u_i, behind the last of which its lane runs what is
      left of that backward, and what every stage runs for its update, C:
      T >= w(u_1) + c(u_2) + … + c(u_k) + runs x (forward and input gradient) of o + C.
    Both for the cut that o's stage has, so at least the minimum over cuts of the larger of them.

    In the same way one sample goes down every path and back up: T >= w(u_1) + c(u_2) + … + c(o) + C.

    In a pair a forward still takes its time before the next operator starts, but it adds less to its lane: the
    least of both stands for those u_i that may be in o's stage. split: an operator may be cut into parts.
    """
    graph = problem.profile.graph
    every = every_stage_ns(problem)

    def part(rows: Ways, cut: Cut, whole: IntArray) -> IntArray:
        return least_part(problem, rows, cut, whole) if split else whole

    once = least(problem, lambda rows, cut: part(rows, cut, rows.run_ns(cut.samples)))
    crossing = least(problem, lambda rows, cut: crossing_ns(problem, rows, cut, split))
    forward = least(problem, lambda rows, cut: part(rows, cut, rows.forward_ns(cut.samples)))
    busy, busy_crossing = once, crossing
    if problem.overlap:
        busy = least(problem, lambda rows, cut: busy_ns(problem, rows, cut, split))
        busy_crossing = least(problem, lambda rows, cut: busy_ns(problem, rows, cut, split, crossing=True))
    above = before_each(graph, np.minimum(busy_crossing, busy), first=busy)
    above_forward = before_each(graph, np.minimum(forward, busy))

    def through_ns(rows: Ways, cut: Cut) -> IntArray:
        computed = cut.busiest_ns(problem, busy_ns(problem, rows, cut, split))
        crossed = cut.busiest_ns(problem, busy_ns(problem, rows, cut, split, crossing=True))
        update = every if split else update_ns(problem, rows, cut)
        back = above[rows.operator] + crossed + every
        through: IntArray = np.maximum(above_forward[rows.operator] + computed + update, back)
        return through

    longest = np.maximum(least(problem, through_ns), before_each(graph, crossing, first=once) + crossing + every)
    return int(longest.max()), int(longest.argmax())
