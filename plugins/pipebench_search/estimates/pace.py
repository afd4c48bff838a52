"""How fast the memory of devices lets a plan run: micro-batches that are under way have to be held."""

from dataclasses import dataclass

from pipebench.algorithms.planning import memory_limits
from pipebench.algorithms.steady_memory import Holder, lack_bytes, steady_ns, ways_down_ns
from pipebench.costs.links import flows
from pipebench.costs.model import CostModel
from pipebench.costs.placement import lanes_in_turn, micro_batches_of
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan


@dataclass(frozen=True, slots=True, order=True)
class Pace:
    """Smaller is better. lack_bytes: what devices lack with one micro-batch of each stage at a time.

    later_ns: by how much a mini-batch takes longer, about, than if memory were no matter.
    """

    lack_bytes: int
    later_ns: int


def pace_of(model: CostModel, plan: Plan) -> Pace | None:
    """The pace of a plan in a steady state (`algorithms.steady_memory`); None where it has no times or memory."""
    stages = range(len(plan.stages))
    try:
        edges, sent = model.messages(plan), flows(model, plan)
        times = [model.stage_times(stage, plan) for stage in plan.stages]
        memory = [model.stage_memory(plan, at, edges) for at in stages]
        sets, lanes_of = lanes_in_turn(plan)
        counts = [micro_batches_of(model.problem, plan, stage) for stage in plan.stages]
    except PipebenchError:
        return None
    after: list[dict[int, int]] = [{} for _ in stages]
    there_and_back: dict[tuple[int, int, int], int] = {}
    for flow in (each for each in sent if each.turn == 0):
        ends = (flow.receiver, flow.sender) if flow.backward else (flow.sender, flow.receiver)
        there_and_back[*ends, flow.tensor] = there_and_back.get((*ends, flow.tensor), 0) + flow.duration_ns
    for (source, target, _), ns in there_and_back.items():
        after[source][target] = max(ns, after[source].get(target, 0))
    for before, behind in plan.order_edges:
        after[before].setdefault(behind, 0)
    way = ways_down_ns([list(each.items()) for each in after], [each.forward + each.backward for each in times])
    room = [memory_limits(model.problem, devices)[-1] for devices in sets]
    workspace, load = [0] * len(sets), [0] * len(sets)
    holders: list[list[Holder]] = [[] for _ in sets]
    for at, lanes in enumerate(lanes_of):
        each, turns = memory[at], len(lanes)
        held = Holder(
            way[at] * counts[at] // turns, -(-counts[at] // turns), each.per_micro_batch, each.while_live
        )
        for lane in lanes:
            room[lane] -= each.held
            workspace[lane] = max(workspace[lane], each.workspace)
            load[lane] += times[at].period * counts[at] // turns
            holders[lane].append(held)
    room = [a - b for a, b in zip(room, workspace, strict=True)]
    if lack := sum(map(lack_bytes, holders, room)):
        return Pace(lack, 0)
    least = max(load)
    steady = steady_ns(holders, room, least)
    assert steady is not None
    return Pace(0, steady - least)
