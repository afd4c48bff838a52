"""Placement: which device set runs which stage.

A device set here is the devices of one stage, all its replicas; sets are numbered 0, 1, … by their first stage.
"""

from collections.abc import Sequence
from typing import Literal, get_args

from pipebench.domain.errors import InvalidValue

PlacementKind = Literal["apart", "in-turn", "v", "wave", "mirrored", "listed"]
"""How S stages stand on D device sets.

apart: each stage has its own set.
in-turn: stage k is on set k % D; S is a multiple of D.
v: 2 D stages, on sets 0 … D - 1 and back from D - 1 to 0.
wave: S is a multiple of D; the stages sweep there and back, as in a V, and on. A V is the wave of two sweeps.
mirrored: two pipelines of D stages each, the second one on the sets of the first in reverse order.
listed: stages share whole sets in any way.

Only `mirrored` and `listed` are of several pipelines.
"""

PLACEMENT_KINDS: tuple[PlacementKind, ...] = get_args(PlacementKind)
BY_RULE: tuple[PlacementKind, ...] = ("apart", "in-turn", "v", "wave", "mirrored")
"""The kinds that say where each stage stands; the first that holds is the most specific one."""


def pipelines_of_kind(kind: PlacementKind) -> int | None:
    """How many pipelines a plan of that placement has; None: any number."""
    return {"mirrored": 2, "listed": None}.get(kind, 1)


def sets_of_stages(kind: PlacementKind, sets: int, stages: int) -> tuple[int, ...]:
    """The number of the device set of each of `stages` stages on `sets` sets.

    Raises InvalidValue where the kind has another number of stages on so many sets, and for `listed`, which has
    no rule.
    """
    rounds, left = divmod(stages, sets)
    number = {"apart": rounds == 1, "v": rounds == 2, "mirrored": rounds == 2}.get(kind, rounds >= 1)
    if kind == "listed":
        raise InvalidValue("the placement `listed` does not say where stages stand")
    if left or not number:
        wanted = {"apart": "one stage", "v": "two stages", "mirrored": "two stages"}.get(kind, "as many stages")
        raise InvalidValue(
            f"the placement {kind!r} has {wanted} on each device set, there are {stages} stages on {sets} sets"
        )
    back = kind != "in-turn"
    return tuple(
        sets - 1 - place if back and sweep % 2 else place
        for sweep, place in (divmod(stage, sets) for stage in range(stages))
    )


def sets_listed(devices: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The number of each stage's device set; devices: those of each stage."""
    numbers: dict[tuple[int, ...], int] = {}
    return tuple(numbers.setdefault(tuple(sorted(each)), len(numbers)) for each in devices)


def stands_as(kind: PlacementKind, devices: Sequence[Sequence[int]], pipelines: int = 1) -> bool:
    """Whether stages on these devices are placed as the kind says; pipelines: of the plan."""
    if pipelines_of_kind(kind) not in (None, pipelines):
        return False
    if kind == "listed":
        return True
    numbers = sets_listed(devices)
    try:
        return numbers == sets_of_stages(kind, max(numbers) + 1, len(numbers))
    except InvalidValue:
        return False


def placement_kind_of(devices: Sequence[Sequence[int]], pipelines: int = 1) -> PlacementKind:
    """The most specific kind of a plan's stages on these devices."""
    return next((kind for kind in BY_RULE if stands_as(kind, devices, pipelines)), "listed")
