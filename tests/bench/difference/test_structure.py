"""Structure of two plans: hand-made cases, and properties over random ones."""

from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pipebench.bench.difference.matching import match_stages
from pipebench.bench.difference.structure import Change, Structure, compare_structure
from pipebench.domain.plan import Plan, Stage
from tests.builders import stages_plan
from tests.nightly import examples

OPERATORS = 6


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Six operators in up to five stages, in any grouping."""
    home = draw(st.lists(st.integers(0, 4), min_size=OPERATORS, max_size=OPERATORS))
    stages = []
    for name in dict.fromkeys(home):
        members = tuple(f"op{i}" for i, own in enumerate(home) if own == name)
        stages.append(
            Stage(
                operators=members,
                devices=(draw(st.integers(0, 3)),),
                micro_batch=draw(st.sampled_from([1, 2])),
                choice=tuple(
                    draw(st.lists(st.sampled_from(["", "tp"]), min_size=len(members), max_size=len(members)))
                ),
            )
        )
    last = len(stages) - 1
    edges = draw(st.lists(st.tuples(st.integers(0, last), st.integers(0, last)), max_size=2, unique=True))
    return Plan(stages=tuple(stages), order_edges=tuple(edges))


@settings(deadline=None)
@given(plans())
def test_a_plan_and_itself_have_no_differences(plan: Plan) -> None:
    found = compare_structure(plan, plan)
    assert found.same
    assert found.matched == tuple((i, i) for i in range(len(plan.stages)))


@settings(deadline=None)
@given(plans(), plans())
def test_no_difference_means_the_same_plan(before: Plan, after: Plan) -> None:
    if compare_structure(before, after).same:
        assert before == after


@settings(max_examples=examples(200), deadline=None)
@given(plans(), plans())
def test_turned_round_it_is_the_same_difference(before: Plan, after: Plan) -> None:
    there, back = compare_structure(before, after), compare_structure(after, before)
    assert turned(there) == facing(back)


def test_of_equally_good_matchings_both_ways_take_the_same() -> None:
    before = stages_plan([[2], [1, 7], [6], [0, 8], [3, 4, 5]])
    after = stages_plan([[1, 6, 8], [0, 4], [3], [5], [2, 7]])
    assert match_stages(before, after) == {i: j for j, i in match_stages(after, before).items()}


@settings(deadline=None)
@given(plans(), plans())
def test_no_other_matching_moves_fewer_operators(before: Plan, after: Plan) -> None:
    def moved(match: dict[int, int]) -> int:
        at = {name: j for j, stage in enumerate(after.stages) for name in stage.operators}
        return sum(match.get(i) != at[name] for i, stage in enumerate(before.stages) for name in stage.operators)

    size = max(len(before.stages), len(after.stages))
    fewest = min(moved(dict(enumerate(order))) for order in permutations(range(size)))
    assert moved(match_stages(before, after)) == fewest
    moves = compare_structure(before, after).moves
    assert sum(len(move.operators) for move in moves) == fewest


def facing(found: Structure) -> dict[str, Any]:
    """The differences as sets, so that their order does not count."""
    return {
        "matched": set(found.matched),
        "moves": {(m.source, m.target, frozenset(m.operators)) for m in found.moves},
        "splits": set(found.splits),
        "merges": set(found.merges),
        "added": found.added,
        "removed": found.removed,
        "stages": {(s.before, s.after, c.field, c.before, c.after) for s in found.stages for c in s.changes},
        "operators": {(o.operator, o.field, o.before, o.after) for o in found.operators},
        "edges_added": found.edges_added,
        "edges_removed": found.edges_removed,
        "reordered": found.reordered,
    }


def turned(found: Structure) -> dict[str, Any]:
    """What the difference of (after, before) must be."""
    seen = facing(found)
    return seen | {
        "matched": {(b, a) for a, b in seen["matched"]},
        "moves": {(b, a, names) for a, b, names in seen["moves"]},
        "splits": seen["merges"],
        "merges": seen["splits"],
        "added": seen["removed"],
        "removed": seen["added"],
        "stages": {(j, i, field, new, old) for i, j, field, old, new in seen["stages"]},
        "operators": {(name, field, new, old) for name, field, old, new in seen["operators"]},
        "edges_added": seen["edges_removed"],
        "edges_removed": seen["edges_added"],
    }


def test_one_operator_moves_over_the_cut() -> None:
    found = compare_structure(stages_plan([[0, 1, 2], [3, 4]]), stages_plan([[0, 1], [2, 3, 4]]))
    (move,) = found.moves
    assert (move.operators, move.source, move.target) == (("op2",), 0, 1)
    assert replace(found, moves=()).same


def test_a_stage_is_split_and_the_later_ones_shift() -> None:
    whole, parts = stages_plan([[0], [1, 2, 3], [4, 5]]), stages_plan([[0], [1], [2, 3], [4, 5]])
    found = compare_structure(whole, parts)
    assert found.matched == ((0, 0), (1, 2), (2, 3))
    assert [(s.whole, s.parts) for s in found.splits] == [(1, (1, 2))]
    assert [(m.operators, m.source, m.target) for m in found.moves] == [(("op1",), 1, 1)]
    assert found.added == found.removed == ()
    assert found.merges == ()
    merged = compare_structure(parts, whole)
    assert [(m.whole, m.parts) for m in merged.merges] == [(1, (1, 2))]
    assert merged.splits == ()


def test_a_stage_with_half_of_its_operators_from_each_side_is_new_and_splits_neither() -> None:
    found = compare_structure(stages_plan([[0, 1, 2], [3, 4, 5]]), stages_plan([[0, 1], [2, 3], [4, 5]]))
    assert found.matched == ((0, 0), (1, 2))
    assert (found.added, found.splits) == ((1,), ())


def test_operators_that_only_one_plan_has() -> None:
    found = compare_structure(stages_plan([[0, 1], [2]]), stages_plan([[0, 1, 3], [4]]))
    assert {(m.operators, m.source, m.target) for m in found.moves} == {
        (("op2",), 1, None),
        (("op3",), None, 0),
        (("op4",), None, 1),
    }
    assert (found.removed, found.added) == ((1,), (1,))


def test_a_clone_that_is_gone_moved_to_no_stage() -> None:
    cloned = Plan(stages=tuple(Stage(operators=("c", f"op{i}"), devices=(i,), micro_batch=1) for i in range(2)))
    single = Plan(stages=(cloned.stages[0], replace(cloned.stages[1], operators=("op1",))))
    (move,) = compare_structure(cloned, single).moves
    assert (move.operators, move.source, move.target) == (("c",), 1, None)


def test_fields_choices_splits_and_the_plan_itself() -> None:
    before = stages_plan([[0, 1], [2]], in_flight=[2, 1], order_edges=[(0, 1)])
    first = replace(before.stages[0], in_flight=4, choice=("", "tp2"), sharding=({}, {"batch": 2}))
    after = replace(before, stages=(first, before.stages[1]), copies=2, routing="relay", order_edges=())
    found = compare_structure(before, after)
    (stage,) = found.stages
    assert (stage.before, stage.after) == (0, 0)
    assert stage.changes == (Change(field="in_flight", before=2, after=4),)
    assert [(o.operator, o.field, o.before, o.after) for o in found.operators] == [
        ("op1", "choice", "", "tp2"),
        ("op1", "sharding", "", "batch/2"),
    ]
    assert [c.field for c in found.plan] == ["copies", "routing"]
    assert (found.edges_removed, found.edges_added) == (((0, 1),), ())


def test_order_of_stages_counts_order_inside_a_stage_does_not() -> None:
    plan = stages_plan([[0, 1], [2]])
    swapped = replace(plan, stages=plan.stages[::-1])
    assert replace(compare_structure(plan, swapped), reordered=False).same
    assert compare_structure(plan, swapped).reordered
    assert compare_structure(plan, stages_plan([[1, 0], [2]])).same


def test_edges_follow_their_stages() -> None:
    before = stages_plan([[0, 1], [2], [3]], order_edges=[(1, 2)])
    after = stages_plan([[0], [1], [2], [3]], order_edges=[(2, 3), (0, 1)])
    found = compare_structure(before, after)
    assert (found.edges_added, found.edges_removed) == (((0, 1),), ())
