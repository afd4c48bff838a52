"""Transfers of a trace within what a link carries."""

import numpy as np

from pipebench.check.periodic_resources import link_between
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import LinkMode
from pipebench.domain.plan import Plan
from pipebench.domain.trace import Trace
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Witness


def crowded_link(plan: Plan, trace: Trace, mode: LinkMode, tolerance_ns: int) -> Witness | None:
    """The first transfer that starts on a link on which another one has not ended.

    Link mode `half`: one transfer at a time for a pair of device sets, `full`: for each direction, `delay`:
    any number. Between stages on the same devices there is no link.
    """
    if mode == "delay" or not trace.source:
        return None
    columns = (trace.source, trace.target, trace.transfer_start_ns, trace.transfer_end_ns)
    source, target, start, end = (np.array(column, dtype=np.int64) for column in columns)
    pairs, which = np.unique(np.array([source, target]), axis=1, return_inverse=True)
    keys = [link_between(plan, int(sender), int(receiver), mode) for sender, receiver in pairs.T]
    number = {key: position for position, key in enumerate(dict.fromkeys(keys))}
    link = np.array([number[key] for key in keys])[which.ravel()]
    local = np.array([sender == receiver for sender, receiver in keys])[which.ravel()]
    rows = np.flatnonzero(~local & (end > start))
    rows = rows[np.lexsort((end[rows], start[rows], link[rows]))]
    pair = first_overlap(link[rows], start[rows], end[rows], tolerance_ns)
    if pair is None:
        return None
    first, second = int(rows[pair]), int(rows[pair + 1])
    message = (
        f"the transfer from stage {source[second]} to stage {target[second]} starts at "
        f"{exact_ns(start[second])}, the link carries the one from stage {source[first]} to stage {target[first]} "
        f"until {exact_ns(end[first])}"
    )
    return Witness(
        rule="resource",
        message=message,
        stage=int(source[second]),
        micro_batch=int(trace.message[second]),
        instant_ns=int(start[second]),
    )


def first_overlap(resource: IntArray, start: IntArray, end: IntArray, tolerance_ns: int) -> int | None:
    """The first row before whose end the next one starts on the same resource; rows in order of start."""
    clash = (resource[1:] == resource[:-1]) & (start[1:] < end[:-1] - tolerance_ns)
    return int(np.argmax(clash)) if clash.any() else None
