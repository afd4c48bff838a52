"""Two plans with their problems: costs by the suite's models, problems that differ, bare plans."""

from msgspec.structs import replace

from pipebench.bench.difference.operands import PlanSide
from pipebench.bench.difference.plans import PlanDifference, compare_plans, problem_changes
from pipebench.check import check_schedule
from pipebench.domain.cluster import Cluster
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from pipebench.domain.schedule import FiniteSchedule, Lane
from tests.builders import chain_problem, cluster, stages_plan


def problem(on: Cluster | None = None, mini_batch: int = 2) -> Problem:
    return chain_problem(
        [10, 20, 30],
        [20, 40, 60],
        on or cluster(2),
        activations=[5, 6, 7, 0],
        weights=[100, 200, 400],
        mode="sync",
        mini_batch=mini_batch,
    )


def in_turn(plan: Plan) -> FiniteSchedule:
    """All forwards, then all backwards, two micro-batches."""
    lanes = [
        Lane(devices=stage.devices, stage=(i,) * 4, micro_batch=(0, 1, 0, 1), kinds="FFBB")
        for i, stage in enumerate(plan.stages)
    ]
    return FiniteSchedule(lanes=tuple(lanes))


def side(groups: list[list[int]], of: Problem | None, name: str = "x.json") -> PlanSide:
    plan = stages_plan(groups)
    return PlanSide(name, plan, of, in_turn(plan) if of else None, "me", "gpipe")


def difference(before: PlanSide, after: PlanSide) -> PlanDifference:
    return compare_plans(before, after)


def test_a_plan_and_itself() -> None:
    found = difference(side([[0, 1], [2]], problem()), side([[0, 1], [2]], problem(), "y.json"))
    assert found.same
    assert found.figures_before == found.figures_after


def test_memory_and_time_before_and_after() -> None:
    before, after = side([[0, 1], [2]], problem()), side([[0], [1, 2]], problem())
    found = difference(before, after)
    assert not found.same
    (move,) = found.structure.moves
    assert (move.operators, move.weight_bytes) == (("op1",), 200)
    old, new = found.figures_before, found.figures_after
    assert old is not None
    assert new is not None
    assert [s.weight_bytes for s in old.stages] == [300, 400]
    assert [s.weight_bytes for s in new.stages] == [100, 600]
    assert [s.held_bytes for s in new.stages] == [200, 1200]
    assert [(s.forward_ns, s.backward_ns) for s in old.stages] == [(30, 60), (30, 60)]
    for one, figures in ((before, old), (after, new)):
        assert one.schedule is not None
        assert figures.peak_bytes == check_schedule(problem(), one.plan, one.schedule).peak_bytes
        assert figures.status == "valid"
    # Two stages of 30 and 60 ns, transfers of 7 bytes at a byte a nanosecond, gpipe by hand: F0 F0' end at 30, 60;
    # F1 runs 37-67 and 67-97, B1 97-157 and 157-217; B0 164-224 and 224-284.
    assert old.simulated_s is not None
    assert round(old.simulated_s * 1e9) == 284
    assert found.schedules_differ is False


def test_other_problems_leave_structure_only() -> None:
    found = difference(side([[0, 1], [2]], problem()), side([[0], [1, 2]], problem(mini_batch=4)))
    assert [(c.field, c.before, c.after) for c in found.problem] == [("mini_batch", 2, 4)]
    assert found.figures_before is None
    assert found.figures_after is None
    assert len(found.structure.moves) == 1
    assert not difference(side([[0, 1], [2]], problem()), side([[0, 1], [2]], problem(mini_batch=4))).same


def test_every_part_of_a_problem_can_differ() -> None:
    base = problem()
    profile = base.profile
    slower = replace(profile, costs=(replace(profile.costs[0], micro_batches=(2,)),))
    others = {
        "profile": replace(base, profile=replace(profile, name="other")),
        "profile figures": replace(base, profile=slower),
        "memory_bytes": replace(base, cluster=cluster(2, memory=10**9)),
        "devices": replace(base, cluster=cluster(3)),
        "cluster figures": replace(base, cluster=cluster(2, bandwidth=2e9)),
        "regime optimizer": replace(base, regime=replace(base.regime, optimizer="adam")),
        "pin pipeline": replace(base, pins=Pins(pipeline=2)),
    }
    for field, other in others.items():
        assert [c.field for c in problem_changes(base, other)] == [field]
    assert problem_changes(base, problem()) == ()


def test_a_bare_plan_is_looked_at_on_the_problem_of_the_other() -> None:
    found = difference(side([[0, 1], [2]], None, "bare.json"), side([[0], [1, 2]], problem()))
    assert found.figures_before is not None
    assert found.figures_before.estimated_s is not None
    assert found.figures_before.peak_bytes == {}
    assert found.schedules_differ is None
    assert found.notices == ("bare.json holds no problem; it is looked at on that of x.json",)
    both_bare = difference(side([[0, 1], [2]], None), side([[0], [1, 2]], None))
    assert both_bare.figures_before is None
    assert len(both_bare.structure.moves) == 1


def test_an_invalid_plan_has_a_reason_in_place_of_figures() -> None:
    found = difference(side([[0, 1], [2]], problem()), side([[0, 1]], problem()))
    figures = found.figures_after
    assert figures is not None
    assert figures.status == "invalid"
    assert "op2" in figures.trouble
    assert figures.estimated_s is None


def test_a_plan_that_does_not_fit_still_has_its_figures() -> None:
    small = problem(cluster(2, memory=1000))
    figures = difference(side([[0, 1], [2]], small), side([[0], [1, 2]], small)).figures_after
    assert figures is not None
    assert (figures.status, figures.fit) == ("invalid", "does not fit")
    assert figures.peak_bytes[1] > 1000
    assert figures.simulated_s is not None
