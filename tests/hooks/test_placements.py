"""Which plans a component takes, and what it says to others."""

from collections.abc import Sequence

import pytest

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.placement import PLACEMENT_KINDS, PlacementKind, placement_kind_of, sets_of_stages
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.hooks.descriptors import Executor, ExecutorCapabilities, ScheduleCapabilities, Scheduler
from pipebench.hooks.placements import placements_of, refuse_placement, takes_placement


def plan(devices: Sequence[int], pipelines: int = 1) -> Plan:
    length = len(devices) // pipelines
    return Plan(
        stages=tuple(
            Stage(operators=(f"op{k % length}",), devices=(device,), micro_batch=1)
            for k, device in enumerate(devices)
        ),
        placement=placement_kind_of([(device,) for device in devices], pipelines),
        pipelines=pipelines,
    )


PLANS = {
    "apart": plan((0, 1, 2)),
    "in-turn": plan((0, 1, 0, 1)),
    "v": plan((0, 1, 1, 0)),
    "wave": plan((0, 1, 1, 0, 0, 1)),
    "mirrored": plan((0, 1, 1, 0), pipelines=2),
    "listed": plan((0, 1, 0)),
    "listed twice": plan((0, 0, 1, 1), pipelines=2),
}
TAKEN: dict[PlacementKind, set[str]] = {
    "apart": {"apart"},
    "in-turn": {"apart", "in-turn"},
    "v": {"v"},
    "wave": {"apart", "v", "wave"},
    "mirrored": {"mirrored"},
    "listed": {"apart", "in-turn", "v", "wave", "listed"},
}
"""A placement to the plans that stand so; `listed` is every way, of one pipeline."""


@pytest.mark.parametrize("kind", PLACEMENT_KINDS)
def test_a_plan_is_taken_by_how_it_stands(kind: PlacementKind) -> None:
    assert {name for name, each in PLANS.items() if takes_placement((kind,), each)} == TAKEN[kind]


def test_several_placements_take_what_each_of_them_takes() -> None:
    assert takes_placement(("apart", "v"), PLANS["apart"])
    assert takes_placement(("apart", "v"), PLANS["v"])
    assert not takes_placement(("apart", "v"), PLANS["in-turn"])
    assert takes_placement(("listed", "mirrored"), PLANS["listed twice"])
    assert not takes_placement((), PLANS["apart"])


def test_what_is_declared_counts_not_what_the_plan_calls_itself() -> None:
    """One device: stages in turn are a V and a wave as well."""
    alone = plan((0, 0))
    assert alone.placement == "in-turn"
    assert all(takes_placement((kind,), alone) for kind in ("in-turn", "v", "wave", "listed"))
    assert sets_of_stages("v", 1, 2) == (0, 0)


def test_the_deprecated_field_still_counts() -> None:
    assert placements_of(ScheduleCapabilities(shared_devices=True)) == ("apart", "listed")
    assert placements_of(ScheduleCapabilities()) == ("apart",)
    assert placements_of(ExecutorCapabilities()) == ("listed",)
    assert placements_of(ExecutorCapabilities(shared_devices=False)) == ("apart",)


def scheduler(*placements: PlacementKind) -> Scheduler:
    abilities = ScheduleCapabilities(placements=placements)
    return Scheduler(name="own", summary="", load="", capabilities=abilities)


@pytest.mark.parametrize(
    ("placements", "name", "words"),
    [
        (
            ("v",),
            "apart",
            "own takes the placement v; this plan has apart: 3 stages on 3 device sets (type --vpp 2,",
        ),
        (
            ("in-turn", "v"),
            "wave",
            "in-turn or v; this plan has wave: 6 stages on 2 device sets (type --vpp 2 or more",
        ),
        (("apart",), "mirrored", "this plan has mirrored: 4 stages on 2 device sets, 2 pipelines (type --vpp 1,"),
        (("listed",), "mirrored", "own takes the placement listed; this plan has mirrored"),
    ],
)
def test_a_refusal_says_what_there_is_what_is_taken_and_what_to_type(
    placements: tuple[PlacementKind, ...], name: str, words: str
) -> None:
    with pytest.raises(UnsupportedProblem) as raised:
        refuse_placement("own", scheduler(*placements), PLANS[name])
    assert words in str(raised.value)


def test_pairs_are_for_executors_that_run_them() -> None:
    lane = Lane(devices=(0,), stage=(0,) * 4, micro_batch=(0, 1, 0, 1), kinds="FFBB", together=(1,))
    schedule = FiniteSchedule(lanes=(lane,))
    one = plan((0,))

    def executor(pairs: bool) -> Executor:
        return Executor(name="own", summary="", load="", capabilities=ExecutorCapabilities(pairs=pairs))

    refuse_placement("own", executor(pairs=True), one, schedule)
    with pytest.raises(UnsupportedProblem, match=r"own runs one task at a time; .* on devices \[0\]"):
        refuse_placement("own", executor(pairs=False), one, schedule)
