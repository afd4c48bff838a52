"""What a periodic schedule must obey, as arrays that kernels read: operations, arcs, resources and memory."""

from typing import NamedTuple

from pipebench.costs.quantise import IntArray


class Pattern(NamedTuple):
    """n operations of micro-batch 0 at unknown instants t; every other micro-batch is shifted by whole periods T.

    duration: ns, shape (n,). resource: which device or link each one occupies, -1 none, (n,). Arc i says
    t[arc_to] - t[arc_from] >= arc_ns + arc_periods x T. lane_start: shared device d runs the stages numbered
    lane_start[d] … lane_start[d + 1] - 1, whose operations are lane_forward and lane_backward and which add
    lane_each bytes for each live micro-batch. Event e: when event_operation[e] starts on device event_lane[e],
    what is live must fit in event_room[e] bytes. A device with one stage needs no event: an arc limits how
    long a micro-batch lives. Durations on shared devices are at least 1 ns, so that what runs first is defined.
    """

    duration: IntArray
    resource: IntArray
    arc_from: IntArray
    arc_to: IntArray
    arc_ns: IntArray
    arc_periods: IntArray
    lane_start: IntArray
    lane_forward: IntArray
    lane_backward: IntArray
    lane_each: IntArray
    event_lane: IntArray
    event_operation: IntArray
    event_room: IntArray
