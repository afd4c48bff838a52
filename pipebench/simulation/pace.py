"""The exact pace of a pattern whose lanes and links keep its order, without running it."""

from fractions import Fraction

import numpy as np

from pipebench.algorithms.cycle_ratio import maximum_cycle_ratio
from pipebench.costs.quantise import IntArray
from pipebench.domain.schedule import PeriodicSchedule
from pipebench.simulation.network import FlowTable
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import BACKWARD, FORWARD
from pipebench.simulation.unroll import flow_order, kinds_of, transfers_of_flows

Arc = tuple[int, int, int, int]
"""From one entry of the pattern to one that waits for it: entries, ns, and how many periods lie between."""


def exact_pace(schedule: PeriodicSchedule, order: IntArray, stages: StageTable, network: FlowTable) -> Fraction:
    """ns for one micro-batch in the long run, ports left out; order: unroll.operation_order.

    Entries are operations and the flows that occupy links. Each waits for the one in front of it on its lane or
    link and for its inputs; the pace is the maximum cycle ratio of these waits (Baccelli, Cohen, Olsder and
    Quadrat 1992, theorem 3.28), to which every run settles, however late.
    """
    arcs = [
        *_lane_arcs(schedule, order, stages),
        *_link_arcs(schedule, network),
        *_input_arcs(schedule, stages, network),
    ]
    tail, head, weight, tokens = np.array(arcs, np.int64).T
    return maximum_cycle_ratio(tail, head, weight, tokens)


def _ring(entries: list[int], weights: list[int]) -> list[Arc]:
    """Each entry waits for the one in front of it, the first one for the last one of the period before."""
    following = [*entries[1:], entries[0]]
    last = len(entries) - 1
    return [
        (entry, after, weight, int(position == last))
        for position, (entry, after, weight) in enumerate(zip(entries, following, weights, strict=True))
    ]


def _lane_arcs(schedule: PeriodicSchedule, order: IntArray, stages: StageTable) -> list[Arc]:
    stage = np.array(schedule.stage, np.int64)
    length = stages.duration[kinds_of(schedule), stage]
    arcs: list[Arc] = []
    for lane in range(len(stages.lanes)):
        entries = order[stages.lane[stage[order]] == lane]
        arcs += _ring(entries.tolist(), length[entries].tolist())
    return arcs


def _link_arcs(schedule: PeriodicSchedule, network: FlowTable) -> list[Arc]:
    operations = len(schedule.kinds)
    arcs: list[Arc] = []
    for flows in flow_order(schedule, network):
        arcs += _ring((operations + flows).tolist(), network.duration[flows].tolist())
    return arcs


def _input_arcs(schedule: PeriodicSchedule, stages: StageTable, network: FlowTable) -> list[Arc]:
    kind = kinds_of(schedule).tolist()
    entry = {(stage, kind[position]): position for position, stage in enumerate(schedule.stage)}
    shift = schedule.shift
    arcs: list[Arc] = []
    for stage in range(len(stages.count)):
        ahead, back = entry[stage, FORWARD], entry[stage, BACKWARD]
        arcs.append((ahead, back, int(stages.duration[FORWARD, stage]), shift[back] - shift[ahead]))
    for flow, transfer in enumerate(transfers_of_flows(schedule, network)):
        passing = BACKWARD if network.backward[flow] else FORWARD
        source, target = entry[int(network.sender[flow]), passing], entry[int(network.receiver[flow]), passing]
        length = int(stages.duration[passing, network.sender[flow]])
        if transfer < 0:
            arcs.append((source, target, length + int(network.duration[flow]), shift[target] - shift[source]))
            continue
        between, hop = len(kind) + flow, schedule.transfer_shift[transfer]
        arcs.append((source, between, length, hop - shift[source]))
        arcs.append((between, target, int(network.duration[flow]), shift[target] - hop))
    return arcs
