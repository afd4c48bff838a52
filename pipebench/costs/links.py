"""Flows: what each message of a plan occupies on its way, and for how long."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.costs.messages import Latest, Message, levels_crossed
from pipebench.costs.model import CostModel
from pipebench.costs.placement import copies_that_differ, in_copy, lanes_in_turn, turns_between
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.cluster import Cluster
from pipebench.domain.plan import Plan

Link = tuple[int, int]
"""Sending and receiving lane (link mode `full`), or the two lanes in ascending order (`half`)."""

Port = tuple[int, int, int, int]
"""Position of a link level, number of a group of the level below, 0 for the way out of it and 1 for the way in,
and the copy of the pipeline whose messages pass it."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One tensor on its way from stage `sender` to stage `receiver`.

    turn, turns: the micro-batches i that go this way: i mod turns = turn. A flow for each turn where replicas take
    micro-batches in turn; else one, with turn 0 of 1.
    backward: the flow carries the gradient, from consumer to producer.
    duration_ns: time of one message, which carries one of the sender's micro-batches.
    link: None where no message waits for another: link mode `delay`, stages on the same devices, empty messages.
    ports: the ports that a message occupies, each with its ns; of each copy of `copies_that_differ`.
    in_place: both stages are on the same devices.
    """

    sender: int
    receiver: int
    tensor: int
    backward: bool
    duration_ns: int
    link: Link | None
    ports: tuple[tuple[Port, int], ...]
    in_place: bool
    turn: int = 0
    turns: int = 1


def flows(model: CostModel, plan: Plan) -> tuple[Flow, ...]:
    """The flows of all messages of the plan: forward flows, then backward flows, each in the order of
    model.messages, then by turn.

    A link carries one transfer at a time. Where a level that the message crosses has a shared bandwidth, the
    message also occupies ports: the way out of each group of the level below that holds a sending device, and the
    way in of each group that holds a receiving device. It occupies each for bytes / (groups * shared bandwidth),
    rounded half-even to ns. Groups of the innermost level are single devices.
    A message lasts as long as the slowest of its link and ports.

    Raises InvalidValue for stages that share some devices but not all, UnsupportedProblem for too many turns.
    """
    return _latest.get(model.problem, plan, lambda: _made(model, plan))


_latest: Latest[tuple[Flow, ...]] = Latest()


def _made(model: CostModel, plan: Plan) -> tuple[Flow, ...]:
    _, lane_of = lanes_in_turn(plan)
    return tuple(
        _flow(model, plan, lane_of, message, backward, turn)
        for backward in (False, True)
        for message in model.messages(plan)
        for turn in range(turns_between(plan.stages[message.source], plan.stages[message.target]))
    )


def flow_of(model: CostModel, plan: Plan, message: Message, backward: bool) -> Flow:
    """The flow of one message of the plan, of turn 0. Raises InvalidValue as `flows` does."""
    return _flow(model, plan, lanes_in_turn(plan)[1], message, backward, 0)


def _flow(
    model: CostModel, plan: Plan, lane_of: Sequence[Sequence[int]], message: Message, backward: bool, turn: int
) -> Flow:
    mode = model.problem.cluster.link_mode
    sender, receiver = (message.target, message.source) if backward else (message.source, message.target)
    here, there = (lane_of[stage][turn % len(lane_of[stage])] for stage in (sender, receiver))
    duration = model.message_ns(plan, message, backward, turn)
    link: Link | None = None
    ports: tuple[tuple[Port, int], ...] = ()
    if duration > 0 and mode != "delay":
        ports = _ports(model, plan, message, backward, turn)
        link = (here, there) if mode == "full" else (min(here, there), max(here, there))
    return Flow(
        sender=sender,
        receiver=receiver,
        tensor=message.tensor,
        backward=backward,
        duration_ns=max(duration, *(occupied for _, occupied in ports), 0),
        link=link,
        ports=ports,
        in_place=here == there,
        turn=turn,
        turns=turns_between(plan.stages[message.source], plan.stages[message.target]),
    )


def _ports(
    model: CostModel, plan: Plan, message: Message, backward: bool, turn: int
) -> tuple[tuple[Port, int], ...]:
    source, target = plan.stages[message.source], plan.stages[message.target]
    senders, receivers = (stage.devices_of(turn) for stage in ((target, source) if backward else (source, target)))
    sent = (
        model.gradient_bytes(message.tensor, target.micro_batch)
        if backward
        else model.tensor_bytes(message.tensor, source.micro_batch)
    )
    cluster = model.problem.cluster
    return tuple(
        (each.port, each.occupied_ns(sent))
        for copy in copies_that_differ(cluster, plan)
        for each in ports_between(cluster, in_copy(plan, senders, copy), in_copy(plan, receivers, copy), copy)
    )


@dataclass(frozen=True, slots=True)
class Passage:
    """A port on the way between two sets of devices. groups: of devices that share out the bytes at this end.

    bandwidth_bytes_s: what all devices of one such group send or receive together.
    """

    port: Port
    groups: int
    bandwidth_bytes_s: float

    def occupied_ns(self, sent_bytes: int) -> int:
        """For how long a message of so many bytes occupies the port."""
        return round(sent_bytes / self.groups / self.bandwidth_bytes_s * NS_PER_S)


def ports_between(
    cluster: Cluster, senders: Sequence[int], receivers: Sequence[int], copy: int = 0
) -> list[Passage]:
    """The ports that messages pass, by level: the ways out, then the ways in (`flows`).

    senders, receivers: device ids, in that copy.
    """
    lowest, highest = min(*senders, *receivers), max(*senders, *receivers)
    found: list[Passage] = []
    for position, level in enumerate(levels_crossed(cluster.levels, lowest, highest)):
        if level.shared_bandwidth_bytes_s is None:
            continue
        below = cluster.levels[position - 1].group if position else 1
        for way, devices in enumerate((senders, receivers)):
            groups = sorted({device // below for device in devices})
            found += [
                Passage((position, group, way, copy), len(groups), level.shared_bandwidth_bytes_s)
                for group in groups
            ]
    return found
