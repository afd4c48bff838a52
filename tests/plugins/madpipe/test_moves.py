"""Moves from an allocation to the next: each one, on no more GPUs than there are; improve ends where all fail."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.costs.quantise import IntArray
from pipebench.domain.problem import Problem
from pipebench_madpipe.allocation import Allocation, BoolArray, Estimate, admits
from pipebench_madpipe.moves import improve, next_move
from tests.algorithms.strategies import chains, partitions
from tests.plugins.madpipe.brute_force import class_of
from tests.plugins.madpipe.networks import network

ESTIMATE = Estimate(tight=True, in_place=True)


def neighbours(bounds: tuple[int, ...], special: tuple[bool, ...]) -> set[Allocation]:
    """A cut shifted by up to three layers, one kind or two in a row changed, two stages joined, one split."""
    stages, found = len(special), set()
    for i, by in product(range(1, stages), (-3, -2, -1, 1, 2, 3)):
        if bounds[i - 1] < bounds[i] + by < bounds[i + 1]:
            found.add(Allocation((*bounds[:i], bounds[i] + by, *bounds[i + 1 :]), special))
    for i, more in product(range(stages), (1, 2)):
        if i + more <= stages:
            changed = tuple(kind != (i <= j < i + more) for j, kind in enumerate(special))
            found.add(Allocation(bounds, changed))
    for i in range(stages - 1):
        for kind in special[i : i + 2]:
            found.add(Allocation((*bounds[: i + 1], *bounds[i + 2 :]), (*special[:i], kind, *special[i + 2 :])))
    for i in range(stages):
        for cut, kinds in product(range(bounds[i] + 1, bounds[i + 1]), product((False, True), repeat=2)):
            found.add(
                Allocation((*bounds[: i + 1], cut, *bounds[i + 1 :]), (*special[:i], *kinds, *special[i + 1 :]))
            )
    return found


@st.composite
def allocated(draw: st.DrawFn) -> tuple[Problem, Allocation]:
    problem = draw(chains(most_layers=7, most_devices=4, least_time=1))
    length = len(problem.profile.graph.operators)
    bounds = draw(partitions(length, length))
    return problem, Allocation(bounds, tuple(draw(st.booleans()) for _ in bounds[1:]))


@given(drawn=allocated(), period=st.integers(20, 200))
def test_every_move_that_the_estimate_admits_is_made_once(drawn: tuple[Problem, Allocation], period: int) -> None:
    problem, start = drawn
    of = class_of(problem)
    place, made = (0, 0, 0), []
    while True:
        place, bounds, special = next_move(
            of.table, of.memory, period, (1, of.most), *start.arrays, place, ESTIMATE
        )
        if len(special) == 0:
            break
        made.append(Allocation(tuple(map(int, bounds)), tuple(map(bool, special))))
    expected = {
        each
        for each in neighbours(*start)
        if each.devices <= of.most and admits(of.table, *each.arrays, of.memory, period, ESTIMATE)
    }
    assert set(made) == expected
    assert len(made) <= len(expected) + 2 * len(start.special), "joins of two stages of one kind come twice"


@pytest.mark.parametrize(("devices", "memory"), [(3, 6), (4, 8), (6, 10)])
def test_improving_what_is_improved_changes_nothing(devices: int, memory: int) -> None:
    of = class_of(network("resnet50", devices, memory))

    def improved(period: int, bounds: IntArray, special: BoolArray) -> tuple[int, IntArray, BoolArray]:
        return improve(of.table, of.memory, 1, period, 1, of.most, bounds, special, 10**6, 300)[:3]

    shares = tuple(of.length * i // devices for i in range(devices + 1))
    once = improved(10**12, *Allocation(shares, (False,) * devices).arrays)
    assert once[0] < 10**12
    again = improved(*once)
    assert again[0] == once[0]
