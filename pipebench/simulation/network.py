"""The link table: messages of the plan as flows in columns, with the links and ports that they occupy."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipebench.costs.links import Flow, flows
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan
from pipebench.simulation.stages import StageTable

NO_TENSOR = -1


@dataclass(frozen=True, slots=True)
class FlowTable:
    """The flows of costs.links, then the order edges in both directions (tensor -1). Columns of shape (flows,).

    sender, receiver: stages.
    turn, turns: the flow carries the sender's micro-batches i with i mod turns = turn (costs.links.Flow).
    tensor: position in the graph, or -1.
    backward: 1 for gradients.
    duration: ns.
    base: number of the flow's first message. A flow has a message for each of its micro-batches; messages are
    numbered forward ones first, then by flow and micro-batch.
    count: the number of the flow's messages.
    messages: the number of all messages.
    link: number of the link, or -1.
    queue: waiting line of flows that share link and ports, or -1 for a flow that occupies nothing.
    port_first (flows + 1,), port, port_ns: the ports of each flow.
    in_place: 1 where nothing is sent.
    """

    sender: IntArray
    receiver: IntArray
    turn: IntArray
    turns: IntArray
    tensor: IntArray
    backward: IntArray
    duration: IntArray
    base: IntArray
    count: IntArray
    link: IntArray
    queue: IntArray
    port_first: IntArray
    port: IntArray
    port_ns: IntArray
    in_place: IntArray
    messages: int
    links: int
    queues: int
    ports: int

    def numbers(self, flow: int) -> range:
        """The sender's micro-batches that a flow carries, in the order of its messages."""
        turn, turns = int(self.turn[flow]), int(self.turns[flow])
        return range(turn, turn + turns * int(self.count[flow]), turns)


def flow_table(model: CostModel, plan: Plan, stages: StageTable, queue_by_link: bool = False) -> FlowTable:
    """The flow table of a plan.

    queue_by_link: one waiting line for each link instead of one for each link and direction. A schedule that sets
    the order on every link needs it.
    """
    found = [*flows(model, plan), *_order_flows(plan)]
    sender, turn, turns = (
        np.array([getattr(flow, name) for flow in found], np.int64) for name in ("sender", "turn", "turns")
    )
    whole = stages.count[sender] if found else np.zeros(0, np.int64)
    count = np.maximum(0, -((turn - whole) // turns))
    ends = np.cumsum(count, dtype=np.int64)
    link = _number_keys(found, lambda flow: flow.link)
    queue = (
        link
        if queue_by_link
        else _number_keys(found, lambda flow: flow.link and (flow.link, _sending_lane(flow, stages)))
    )
    ports = {port: number for number, port in enumerate(sorted({p for flow in found for p, _ in flow.ports}))}
    occupied = [entry for flow in found for entry in flow.ports]
    return FlowTable(
        sender=sender,
        receiver=np.array([flow.receiver for flow in found], np.int64),
        tensor=np.array([flow.tensor for flow in found], np.int64),
        turn=turn,
        turns=turns,
        backward=np.array([flow.backward for flow in found], np.int64),
        duration=np.array([flow.duration_ns for flow in found], np.int64),
        base=ends - count,
        count=count,
        link=link,
        queue=queue,
        port_first=np.cumsum([0, *(len(flow.ports) for flow in found)], dtype=np.int64),
        port=np.array([ports[port] for port, _ in occupied], np.int64),
        port_ns=np.array([length for _, length in occupied], np.int64),
        in_place=np.array([flow.in_place for flow in found], np.int64),
        messages=int(ends[-1]) if found else 0,
        links=int(link.max(initial=-1)) + 1,
        queues=int(queue.max(initial=-1)) + 1,
        ports=len(ports),
    )


def _sending_lane(flow: Flow, stages: StageTable) -> int:
    return int(stages.lane[stages.worker[flow.sender] + flow.turn % stages.turns[flow.sender]])


def _order_flows(plan: Plan) -> Iterable[Flow]:
    for backward in (False, True):
        for before, after in plan.order_edges:
            sender, receiver = (after, before) if backward else (before, after)
            yield Flow(sender, receiver, NO_TENSOR, backward, 0, None, (), in_place=True)


def _number_keys(found: Sequence[Flow], key: Callable[[Flow], object]) -> IntArray:
    """The number of each flow's key in order of first use; -1 for the key None."""
    numbers: dict[object, int] = {}
    return np.array(
        [-1 if key(flow) is None else numbers.setdefault(key(flow), len(numbers)) for flow in found], np.int64
    )


def coverage(flow: int, network: FlowTable, stages: StageTable) -> tuple[IntArray, IntArray, IntArray]:
    """The receiver's micro-batches that the flow reaches; of each, its first and last message by position.

    They are those with samples in common. Positions count in `FlowTable.numbers`; shape (micro-batches,).
    """
    receiver, sender = network.receiver[flow], network.sender[flow]
    turn, turns = network.turn[flow], network.turns[flow]
    if turns > 1:  # both have one size, `check.plan.wrong_turns`
        reached = np.arange(turn, stages.count[receiver], turns)
        return reached, reached // turns, reached // turns
    reached = np.arange(stages.count[receiver])
    first = reached * stages.micro_batch[receiver]
    last = first + stages.micro_batch[receiver] - 1
    return reached, first // stages.micro_batch[sender], last // stages.micro_batch[sender]


def add_message_waits(waits: IntArray, arrival: IntArray, network: FlowTable, stages: StageTable) -> None:
    """Add to `waits` how many messages each row waits for. arrival: as in TaskTable."""
    for flow in range(len(network.sender)):
        reached, first, last = coverage(flow, network, stages)
        waits[arrival[slot_of(flow, network, stages) + reached]] += last - first + 1


def slot_of(flow: int, network: FlowTable, stages: StageTable) -> int:
    """The position in TaskTable.slot_row where the rows begin that receive a flow's messages."""
    return int(stages.offset[network.receiver[flow]] + network.backward[flow] * stages.slots)
