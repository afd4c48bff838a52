"""Transfers of a trace within the bandwidth that the devices of a group share."""

import numpy as np

from pipebench.check.trace_links import first_overlap
from pipebench.costs.links import Port, flows
from pipebench.costs.model import CostModel
from pipebench.domain.plan import Plan
from pipebench.domain.schedule import BACKWARD, FORWARD
from pipebench.domain.trace import Trace
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Witness


def crowded_port(model: CostModel, plan: Plan, trace: Trace, tolerance_ns: int) -> Witness | None:
    """The first transfer that starts while another one still occupies the shared way out of a group, or into it.

    A transfer occupies each of its ports from its start, for as long as costs.links says.
    """
    occupied = {
        (BACKWARD if flow.backward else FORWARD, flow.sender, flow.receiver, flow.tensor): flow.ports
        for flow in flows(model, plan)
        if flow.ports
    }
    if not occupied:
        return None
    number: dict[Port, int] = {}
    uses: list[tuple[int, int, int, int]] = []
    for row, key in enumerate(zip(trace.transfer_kinds, trace.source, trace.target, trace.tensor, strict=True)):
        start = trace.transfer_start_ns[row]
        for port, taken in occupied.get(key, ()):
            if taken > 0:
                uses.append((number.setdefault(port, len(number)), start, start + taken, row))
    uses.sort()
    if not uses:
        return None
    port_of, start_ns, end_ns, rows = np.array(uses, dtype=np.int64).T
    pair = first_overlap(port_of, start_ns, end_ns, tolerance_ns)
    if pair is None:
        return None
    level, group, way = list(number)[int(port_of[pair])]
    row = int(rows[pair + 1])
    message = (
        f"the transfer from stage {trace.source[row]} to stage {trace.target[row]} starts at "
        f"{exact_ns(start_ns[pair + 1])}, the shared way {'into' if way else 'out of'} group {group} at level "
        f"{model.problem.cluster.levels[level].name!r} is taken until {exact_ns(end_ns[pair])}"
    )
    return Witness(
        rule="resource",
        message=message,
        stage=trace.source[row],
        micro_batch=trace.message[row],
        instant_ns=int(start_ns[pair + 1]),
    )
