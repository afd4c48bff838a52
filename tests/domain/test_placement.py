"""Placement: one formula for each kind, and the most specific kind of a list of device sets."""

import pytest

from pipebench.domain.errors import InvalidValue
from pipebench.domain.placement import (
    PLACEMENT_KINDS,
    PlacementKind,
    placement_kind_of,
    sets_listed,
    sets_of_stages,
    stands_as,
)


def devices(sets: tuple[int, ...]) -> list[tuple[int, int]]:
    """Two devices for each set, as replicas have."""
    return [(2 * number, 2 * number + 1) for number in sets]


@pytest.mark.parametrize(
    ("kind", "sets", "stages", "expected"),
    [
        ("apart", 3, 3, (0, 1, 2)),
        ("in-turn", 3, 6, (0, 1, 2, 0, 1, 2)),
        ("v", 3, 6, (0, 1, 2, 2, 1, 0)),
        ("wave", 3, 9, (0, 1, 2, 2, 1, 0, 0, 1, 2)),
        ("wave", 2, 8, (0, 1, 1, 0, 0, 1, 1, 0)),
        ("mirrored", 4, 8, (0, 1, 2, 3, 3, 2, 1, 0)),
    ],
)
def test_where_stages_stand(kind: PlacementKind, sets: int, stages: int, expected: tuple[int, ...]) -> None:
    assert sets_of_stages(kind, sets, stages) == expected
    pipelines = 2 if kind == "mirrored" else 1
    assert sets_listed(devices(expected)) == expected
    assert placement_kind_of(devices(expected), pipelines) == kind
    assert stands_as(kind, devices(expected), pipelines)
    assert stands_as("listed", devices(expected), pipelines)


@pytest.mark.parametrize(
    ("kind", "sets", "stages"),
    [
        ("apart", 2, 3),
        ("in-turn", 2, 3),
        ("v", 2, 2),
        ("v", 2, 8),
        ("wave", 2, 3),
        ("mirrored", 2, 2),
        ("listed", 1, 1),
    ],
)
def test_numbers_of_stages_that_a_kind_does_not_have(kind: PlacementKind, sets: int, stages: int) -> None:
    with pytest.raises(InvalidValue, match=kind):
        sets_of_stages(kind, sets, stages)


def test_the_most_specific_kind_comes_first() -> None:
    assert placement_kind_of([(0,)]) == "apart"
    assert placement_kind_of([(3,), (1,)]) == "apart"
    assert placement_kind_of([(0,), (1,), (1,), (0,)]) == "v"
    assert stands_as("wave", [(0,), (1,), (1,), (0,)])
    assert not stands_as("v", [(0,), (1,), (1,), (0,), (0,), (1,)])
    assert placement_kind_of([(0,), (1,), (0,)]) == "listed"
    assert placement_kind_of([(0, 1), (1, 0)]) == "in-turn"


def test_two_stages_on_one_set_stand_in_turn_and_in_a_v() -> None:
    kinds = [kind for kind in PLACEMENT_KINDS if stands_as(kind, [(0,), (0,)])]
    assert kinds == ["in-turn", "v", "wave", "listed"]


def test_only_mirrored_and_listed_are_of_several_pipelines() -> None:
    there_and_back = [(0,), (1,), (1,), (0,)]
    assert [kind for kind in PLACEMENT_KINDS if stands_as(kind, there_and_back, 2)] == ["mirrored", "listed"]
    assert placement_kind_of([(0,), (1,), (2,), (3,)], 2) == "listed"
    assert not stands_as("mirrored", there_and_back, 1)
