"""One operation at a time on every device and link of a periodic schedule, the wrap-around included."""

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

from pipebench.check.periodic_operations import Operation, Pattern
from pipebench.domain.cluster import LinkMode
from pipebench.domain.plan import Plan
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Witness

DeviceSet = tuple[int, ...]


def busy_twice(plan: Plan, pattern: Pattern, mode: LinkMode) -> Witness | None:
    """The first device, then link, on which two operations overlap modulo the period.

    Link mode `half`: one transfer at a time for a pair of device sets, `full`: for each direction, `delay`:
    any number.
    """
    lanes: dict[DeviceSet, list[Operation]] = defaultdict(list)
    for operation in (*pattern.forward, *pattern.backward):
        lanes[plan.stages[operation.stage].devices].append(operation)
    for devices, operations in lanes.items():
        witness = overlap(operations, pattern.period, f"on devices {devices}")
        if witness is not None:
            return witness
    if mode == "delay":
        return None
    links: dict[tuple[DeviceSet, DeviceSet], list[Operation]] = defaultdict(list)
    for (source, target), transfer in (*pattern.forwarded.items(), *pattern.returned.items()):
        if transfer.duration > 0:
            links[link_between(plan, source, target, mode)].append(transfer)
    for (sender, receiver), operations in links.items():
        witness = overlap(operations, pattern.period, f"on the link between devices {sender} and {receiver}")
        if witness is not None:
            return witness
    return None


def link_between(plan: Plan, source: int, target: int, mode: LinkMode) -> tuple[DeviceSet, DeviceSet]:
    """The link that a transfer between two stages takes: ordered in mode `full`, else without direction."""
    sender, receiver = plan.stages[source].devices, plan.stages[target].devices
    return (sender, receiver) if mode == "full" or sender <= receiver else (receiver, sender)


def overlap(operations: Iterable[Operation], period: int, where: str) -> Witness | None:
    """The first two operations that overlap when each repeats every period.

    On a circle of length `period`, sorted by start, each must end before the next begins. An operation
    without duration may stand at a boundary, not inside another.
    """
    ring = sorted(operations, key=lambda o: (o.start % period, o.duration))
    for operation, following in pairwise([*ring, ring[0]]):
        gap = following.start % period - operation.start % period
        if following is ring[0]:
            gap += period
        if operation.duration > gap:
            if following is operation:
                lasts = exact_ns(operation.duration)
                message = f"{operation.name} takes {lasts} {where}, the period is {exact_ns(period)}"
            else:
                late = operation.duration - gap
                message = f"{operation.name} overlaps {following.name} {where} by {exact_ns(late)}"
            instant = operation.start % period
            return Witness(rule="resource", message=message, stage=operation.stage, instant_ns=instant)
    return None
