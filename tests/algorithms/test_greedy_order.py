"""The compiled greedy order against a plain statement of it."""

import itertools
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.algorithms.orders.greedy import GreedyOrder, Order, best_order
from pipebench.algorithms.orders.numbers_in_flight import numbers_in_flight
from pipebench.algorithms.orders.tables import Tables
from pipebench.costs.links import Port
from pipebench.domain.cluster import LinkMode
from pipebench.domain.errors import UnsupportedProblem


@st.composite
def drawn_tables(draw: Callable[..., int]) -> Tables:
    """Two to five stages on one to three lanes, each behind one or two earlier ones."""
    stages, lanes, count = draw(st.integers(2, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    small, few = st.integers(0, 9), st.lists(st.integers(1, 9), min_size=stages, max_size=stages)
    edges = {(draw(st.integers(0, target - 1)), target) for target in range(1, stages) for _ in range(2)}
    before: list[list[tuple[int, int]]] = [[] for _ in range(stages)]
    after: list[list[tuple[int, int]]] = [[] for _ in range(stages)]
    for source, target in sorted(edges):
        before[target].append((source, draw(small)))
        after[source].append((target, draw(small)))
    backward: list[int] = draw(few)  # type: ignore[assignment]
    lane_of = [stage if stage < lanes else draw(st.integers(0, lanes - 1)) for stage in range(stages)]
    link_mode: LinkMode = draw(st.sampled_from(["delay", "half", "full"]))  # type: ignore[arg-type]
    ports: dict[tuple[int, int], dict[Port, int]] = {}
    for reader, each in (*enumerate(before), *enumerate(after)):
        for sender, ns in each:
            if ns and link_mode != "delay" and lane_of[sender] != lane_of[reader] and draw(st.booleans()):
                ways = ((0, lane_of[sender] // 2, 0), (0, lane_of[reader] // 2, 1))
                ports[sender, reader] = {way: draw(st.integers(0, ns)) for way in ways}
    return Tables(
        count=count,
        forward=draw(few),  # type: ignore[arg-type]
        backward=backward,
        weight=[draw(st.integers(0, each)) for each in backward],
        reduce=draw(few),  # type: ignore[arg-type]
        before=before,
        after=after,
        lane_of=lane_of,
        each=draw(few),  # type: ignore[arg-type]
        while_live=draw(few),  # type: ignore[arg-type]
        workspace=draw(few),  # type: ignore[arg-type]
        held=[draw(small) for _ in range(min(lanes, stages))],
        limits=[(10 + draw(small), 40) for _ in range(min(lanes, stages))],
        link_mode=link_mode,
        ports=ports,
    )


def hosted(tables: Tables, lane: int) -> list[int]:
    """The stages of a lane."""
    return [stage for stage, at in enumerate(tables.lane_of) if at == lane]


def roomy(tables: Tables) -> list[int]:
    """By lane, the first of its limits that all lanes keep to with one micro-batch in each stage."""
    least = most_bytes(tables, [1] * len(tables.forward))
    fitting = [each for each in zip(*tables.limits, strict=True) if all(map(int.__ge__, each, least))]
    return list(fitting[0]) if fitting else [2**62] * len(least)


Ends = dict[tuple[str, int, int], int]


def plain(tables: Tables, caps: list[int], split: bool) -> tuple[list[Order], int, list[int]]:
    """Orders of lanes, when all has ended, and the peak of each lane.

    A message leaves when its link and its ports are free; of several that could, the one that was sent first. A
    forward of any but the oldest micro-batch of a lane runs where, with it, all of that one still has room.
    """
    room = roomy(tables)
    back = "I" if split else "B"
    whole = {"F": tables.forward, back: tables.backward, "W": tables.weight}
    if split:
        whole[back] = [a - b for a, b in zip(tables.backward, tables.weight, strict=True)]
    kinds = [back, "F", *(["W"] if split else [])]
    release = "W" if split else back
    left = [(kind, stage) for kind in kinds for stage in range(len(caps)) for _ in range(tables.count)]
    ended: Ends = {}
    arrived: dict[tuple[str, int, int, int], int] = {}
    taken: dict[object, int] = {}
    waiting: list[tuple[int, str, tuple[int, int, int], int]] = []
    lanes: list[Order] = [[] for _ in tables.held]
    free, used, peak = [0] * len(lanes), list(tables.held), list(tables.held)

    def ran(kind: str, stage: int) -> int:
        return sum(one == kind and at == stage for one, at, _ in ended)

    def oldest(lane: int) -> int:
        return min(ran(release, stage) for stage in hosted(tables, lane))

    def fits(stage: int, number: int) -> bool:
        lane = tables.lane_of[stage]
        inside = hosted(tables, lane)
        live = {(s, n) for kind, s, n in ended if kind == "F"} - {
            (s, n) for kind, s, n in ended if kind == release
        }
        live |= {(stage, number), *((s, oldest(lane)) for s in inside)}
        bytes_ = sum(tables.each[s] for s, _ in live if s in inside) + sum(tables.while_live[s] for s in inside)
        return tables.held[lane] + bytes_ + max(tables.workspace[s] for s in inside) <= room[lane]

    def start(kind: str, stage: int) -> tuple[int, int, int, int] | None:
        number = ran(kind, stage)
        neighbours = {"F": tables.before, back: tables.after}.get(kind, [[]] * len(caps))[stage]
        waits: list[tuple[str, int, int]] = []
        if kind == "F" and number - ran(release, stage) >= caps[stage]:
            return None
        if kind == "F" and number > oldest(tables.lane_of[stage]) and not fits(stage, number):
            return None
        if kind == back:
            waits.append(("F", stage, number))
        if kind == "W":
            waits.append((back, stage, number))
        if any(task not in ended for task in waits):
            return None
        if any((kind, other, stage, number) not in arrived for other, _ in neighbours):
            return None
        there = [arrived[kind, other, stage, number] for other, _ in neighbours]
        at = max([free[tables.lane_of[stage]], *there])
        return at, [back, "F", "W"].index(kind), number, -stage

    def places(sender: int, reader: int, ns: int) -> dict[object, int]:
        """The link and the ports that a message occupies, and for how long."""
        ends = [tables.lane_of[sender], tables.lane_of[reader]]
        if tables.link_mode == "delay" or ends[0] == ends[1] or not ns:
            return {}
        link: object = tuple(ends if tables.link_mode == "full" else sorted(ends))
        return {link: ns, **tables.ports.get((sender, reader), {})}

    while left:
        possible = [(when, *each) for each in set(left) if (when := start(*each)) is not None]
        leaving = [
            (
                max([sent, *(taken.get(place, 0) for place in places(*each))]),
                *(sent, kind != "F", each[:2] if kind == "F" else each[1::-1], number),
                (kind, each),
            )
            for sent, kind, each, number in waiting
        ]
        if leaving and (not possible or min(leaving)[0] <= min(possible)[0][0]):
            when, sent, _, _, number, (kind, each) = min(leaving)
            waiting.remove((sent, kind, each, number))
            taken.update({place: when + ns for place, ns in places(*each).items()})
            arrived[kind, *each[:2], number] = when + each[2]
            continue
        (at, _, number, _), kind, stage = min(possible)
        lane = tables.lane_of[stage]
        ended[kind, stage, number] = free[lane] = at + whole[kind][stage]
        left.remove((kind, stage))
        for reader, each in enumerate({"F": tables.before, back: tables.after}.get(kind, [])):
            for sender, ns in each:
                if sender == stage:
                    waiting.append((free[lane], kind, (stage, reader, ns), number))
        lanes[lane].append((kind, stage, number))
        released = ran(release, stage)
        live = ran("F", stage) - released
        if kind == "F":
            used[lane] += tables.each[stage] + (tables.while_live[stage] if live == 1 else 0)
        peak[lane] = max(peak[lane], used[lane] + tables.workspace[stage])
        if kind == release:
            used[lane] -= tables.each[stage] + (tables.while_live[stage] if live == 0 else 0)
    for stage, lane in enumerate(tables.lane_of):
        free[lane] += tables.reduce[stage]
    return lanes, max(free), peak


@settings(max_examples=150, deadline=None)
@given(drawn_tables(), st.booleans())
def test_it_is_the_plain_statement(tables: Tables, split: bool) -> None:
    for caps in itertools.chain(*numbers_in_flight(tables, tables.count)):
        made = GreedyOrder(tables, caps, split)
        assert (made.orders, made.makespan_ns, made.peak_bytes) == plain(tables, caps, split)


@settings(max_examples=300, deadline=None)
@given(drawn_tables(), st.booleans())
def test_where_one_micro_batch_fits_every_order_does(tables: Tables, split: bool) -> None:
    """In the reserve, too, where it does there."""
    least = most_bytes(tables, [1] * len(tables.forward))
    tight = replace(tables, limits=[(most, most + 1) for most in least])
    for caps in itertools.chain(*numbers_in_flight(tables, tables.count)):
        assert GreedyOrder(tight, caps, split).rank[0] == 0
        assert all(map(int.__le__, GreedyOrder(tight, caps, split).peak_bytes, least))


def test_a_stage_waits_for_room_where_the_numbers_in_flight_would_leave_none() -> None:
    """Two stages on a device of three bytes, each with one a micro-batch: beside the first micro-batch, which will
    have two, one of them has room for a second.
    """
    tables = Tables(
        3, [1, 5, 1], [1, 1, 1], [0] * 3, [0] * 3, [[], [(0, 0)], [(1, 0)]], [[(1, 0)], [(2, 0)], []], [0, 1, 0],
        each=[1, 1, 1], while_live=[0] * 3, workspace=[0] * 3, held=[0, 0], limits=[(3,), (3,)],
    )  # fmt: skip
    order = GreedyOrder(tables, [3, 3, 3], False)
    assert order.orders[0][:4] == [("F", 0, 0), ("F", 0, 1), ("F", 2, 0), ("B", 2, 0)]
    roomy = GreedyOrder(replace(tables, limits=[(5,), (3,)]), [3, 3, 3], False)
    assert roomy.orders[0][:3] == [("F", 0, 0), ("F", 0, 1), ("F", 0, 2)]
    assert order.peak_bytes[0] == 3 < roomy.peak_bytes[0]


@settings(max_examples=100, deadline=None)
@given(drawn_tables(), st.randoms(use_true_random=False))
def test_the_best_order_is_the_first_of_least_rank(tables: Tables, draw: random.Random) -> None:
    """Others are left as soon as they are seen to be no better; where memory is short, too."""
    some = itertools.chain(*numbers_in_flight(tables, tables.count))
    tried = [(caps, split) for caps in some for split in (False, True)]
    draw.shuffle(tried)
    best = best_order(tables, tried)
    least = min((GreedyOrder(tables, *each) for each in tried), key=lambda order: order.rank)
    assert (best.rank, best.orders, best.peak_bytes) == (least.rank, least.orders, least.peak_bytes)


def test_an_order_is_left_where_another_one_is_as_fast() -> None:
    tables = Tables(
        4, [2], [3], [0], [0], [[]], [[]], [0], each=[1], while_live=[0], workspace=[0], held=[0], limits=[(9, 9)]
    )
    best = GreedyOrder(tables, [1], False)
    assert not GreedyOrder(tables, [1], False, best.rank).complete
    assert GreedyOrder(tables, [1], False, (0, best.makespan_ns + 1)).complete


def test_stages_that_wait_for_each_other_are_refused() -> None:
    one = [1, 1]
    circle = Tables(
        2, one, one, [0, 0], [0, 0], [[(1, 0)], [(0, 0)]], [[(1, 0)], [(0, 0)]], [0, 1], one, one, one, one,
        [(9, 9), (9, 9)],
    )  # fmt: skip
    with pytest.raises(UnsupportedProblem, match="in a circle"):
        GreedyOrder(circle, [2, 2], False)


def most_bytes(tables: Tables, caps: list[int]) -> list[int]:
    """By lane: all that its stages hold with so many micro-batches, and the largest workspace."""
    stages = range(len(caps))
    return [
        held
        + sum(tables.while_live[s] + caps[s] * tables.each[s] for s in stages if tables.lane_of[s] == lane)
        + max(tables.workspace[s] for s in stages if tables.lane_of[s] == lane)
        for lane, held in enumerate(tables.held)
    ]


@settings(max_examples=300, deadline=None)
@given(drawn_tables())
def test_where_the_usual_numbers_in_flight_do_not_fit_others_do(tables: Tables) -> None:
    """As many as stages follow, where devices have room for them; else numbers for which they have."""

    def fits(caps: list[int]) -> bool:
        limits = [each[-1] for each in tables.limits]
        return all(most <= limit for most, limit in zip(most_bytes(tables, caps), limits, strict=True))

    free, held = numbers_in_flight(tables, tables.count)
    assert free[0] == [min(number, tables.count) for number in tables.follow]
    assert all(fits(caps) for caps in held)
    if fits(free[0]):
        assert not held
    elif fits([1] * len(free[0])):
        assert any(fits(caps) for caps in (*free, *held))
