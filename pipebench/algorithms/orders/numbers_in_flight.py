"""How many micro-batches each stage may keep in flight in an order: numbers that are worth a try."""

from collections.abc import Iterator

from pipebench.algorithms.orders.tables import Tables
from pipebench.algorithms.steady_memory import Holder, steady_ns, ways_down_ns


def numbers_in_flight(tables: Tables, most: int) -> tuple[list[list[int]], list[list[int]]]:
    """Micro-batches in flight of each stage that are worth a try, `most` at most, none twice.

    Whatever memory there is: as many as stages follow, one more, twice as many, any number, half as many, one. And
    where the first do not fit in memory, what does, the fewer first.
    """
    follow = tables.follow
    caps = [
        follow,
        [number + 1 for number in follow],
        [2 * number for number in follow],
        [most] * len(follow),
        [-(-number // 2) for number in follow],
        [1] * len(follow),
    ]
    free = dict.fromkeys(tuple(min(number, most) for number in each) for each in caps)
    if _fit(tables, [min(number, most) for number in follow]):
        return [list(each) for each in free], []
    held = dict.fromkeys(tuple(min(number, most) for number in each) for each in _as_memory_allows(tables))
    return [list(each) for each in free], [list(each) for each in held if each not in free]


def _fit(tables: Tables, caps: list[int]) -> bool:
    """Whether devices have room for as many micro-batches of each stage."""
    return min(_left(tables, caps)) >= 0


def _room(tables: Tables) -> list[int]:
    """Bytes of each lane for micro-batches."""
    taken = zip(tables.limits, tables.held, tables.largest_workspace, strict=True)
    return [limits[-1] - held - most for limits, held, most in taken]


def _left(tables: Tables, caps: list[int]) -> list[int]:
    """What is left of it with as many micro-batches of each stage; below 0: it lacks."""
    left = _room(tables)
    for stage, lane in enumerate(tables.lane_of):
        left[lane] -= tables.while_live[stage] + caps[stage] * tables.each[stage]
    return left


def _as_memory_allows(tables: Tables) -> Iterator[list[int]]:
    """What stages hold in the fastest steady state that has room on each device; and as many more as fit.

    Nothing where one micro-batch of each stage is too much.
    """
    stages = range(len(tables.forward))
    there = [dict(before) for before in tables.before]
    after = [[(other, ns + there[other][stage]) for other, ns in tables.after[stage]] for stage in stages]
    own = [a + b for a, b in zip(tables.forward, tables.backward, strict=True)]
    holders = [
        Holder(way * tables.count, tables.count, tables.each[stage], tables.while_live[stage])
        for stage, way in enumerate(ways_down_ns(after, own))
    ]
    hosted = [[s for s in stages if tables.lane_of[s] == lane] for lane in range(len(tables.held))]
    load = max(sum(own[s] for s in lane) * tables.count for lane in hosted)
    steady = steady_ns([[holders[s] for s in lane] for lane in hosted], _room(tables), load)
    if steady is None:
        return
    caps = [holder.held(steady) for holder in holders]
    yield caps
    more, left = list(caps), _left(tables, caps)
    grown = True
    while grown:
        grown = False
        for stage in sorted(stages, key=lambda s: (more[s] / holders[s].way_ns if holders[s].way_ns else 0.0, s)):
            lane = tables.lane_of[stage]
            if tables.each[stage] and tables.each[stage] <= left[lane] and more[stage] < tables.count:
                more[stage] += 1
                left[lane] -= tables.each[stage]
                grown = True
    yield more
