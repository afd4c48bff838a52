"""A certificate in which anything was changed is refused; under a new seal, where it is a part of the proof."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipebench.certificates.check import check
from pipebench.certificates.document import Refused, opened
from tests.certificates.made import of_case, of_kind
from tests.certificates.mutations import Path, accepted, changed, leaves, lists, others, with_old_seal
from tests.nightly import examples, mostly_at_night

CASES = ("both ways, pairs", "chain, 1F1B, half", "pattern", "replicas across levels of links", "chain, a V")
MOST_OF_A_KIND = 6
"""Leaves or lists of one kind that are changed; of more these many, spread out."""

GIVEN = {
    "about": "where it comes from: no proof",
    "problem": "what is proven about: the same plan and bound of another problem",
    "plan.routing": "a relay between neighbours, which is the message itself",
    "plan.stages.replicas": "one replica, alone or in turn with itself",
    "plan.stages.recompute": "a forward of 0 ns and of no bytes, which runs again",
    "plan.stages.in_flight": "another promise, which the schedule keeps as well",
    "plan.stages.compute_ns": "a weight gradient that no task of the schedule runs alone",
    "plan.stages.joint_ns": "the same",
    "plan.stages.update_ns": "another all-reduce of which each micro-batch has the same share, rounded up",
    "plan.stages.memory_bytes": "less than the peak, at no instant of it",
    "plan.messages": "a message of which there is none in the schedule, or a port that is never short",
    "plan.hidden_ns": "another rounding of the same share",
    "bound.choices": "the names of a way, or a cost that is not the least",
    "bound.every_stage_ns": "more on a path that is not the longest",
    "bound.operator": "another operator with the same bound",
    "bound.proof.every_ns": "more on a device that is busy longer anyway",
    "bound.proof.cases": "a cost that is not the least, or a buffer of what fits nowhere",
    "bound.proof.splits": "another division of the sizes that proves it too",
    "bound.several.proof": "other prices that prove it too, or a cost that is not the least",
    "bound.proof.memory_bytes": "more memory than there is, which proves less, or where no byte has a price",
    "bound.proof.tables": "a cost that is not the least, or more than the bound needs",
    "bound.proof.operators": "another operator's costs, with which the devices still have too little",
    "bound.proof.visits": "an operator off the path",
    "bound.proof.share": "other prices that prove it too",
    "bound.proof.parts": "the same",
    "bound.proof.byte": "the same",
    "bound.proof.byte_parts": "the same",
    "bound.proof.instant": "the same",
    "bound.proof.step_bytes": "another grid that proves it too",
    "bound.proof.points": "the same",
    "bound.proof.loads_ns": "more load, or one that is packed anyway",
    "bound.proof.forward_ns": "of an operator that others wait for longer",
    "bound.proof.back_ns": "the same",
    "bound.proof.links": "another message that is too long for its link",
    "bound.proof.first": "another operator of the same bundle",
    "bound.proof.threshold_ns": "another threshold that proves it too",
}
"""What may be changed under a new seal, as another premise from which the same claims follow; and why.

What is claimed stays word for word what it was: the time, the bound, of which plans, and of which problem. So it
stays true, but of another problem (`problem`), which `certify --check --against STORE` tells apart.
"""
KINDS = "work", "operator", "path", "reduce", "fill", "memory", "links", "layers"
"""Of bounds, each with a small problem in `of_kind`; test_groups has those from groups of devices."""


T = TypeVar("T")


def content_of(name: str) -> Any:
    made = of_kind(name) if name in KINDS else of_case(name)
    return json.loads(made.data)["content"]


def kind_of(path: Path) -> str:
    """The names on a path, without positions in lists."""
    return ".".join(key for key in path if isinstance(key, str))


def some_of_each_kind(places: Iterable[tuple[Path, T]]) -> list[tuple[Path, T]]:
    """All places, or of many of one kind the first, the last and some between."""
    kinds: dict[str, list[tuple[Path, T]]] = {}
    for path, value in places:
        kinds.setdefault(kind_of(path), []).append((path, value))
    return [
        each
        for found in kinds.values()
        for each in {id(e): e for e in (*found[:: -(-len(found) // MOST_OF_A_KIND)], found[-1])}.values()
    ]


@pytest.mark.parametrize("name", CASES)
def test_leaves_of_every_kind_are_sealed(name: str) -> None:
    data = of_case(name).data
    document = json.loads(data)
    for path, value in some_of_each_kind(leaves(document["content"])):
        other = changed(document["content"], path, next(others(value)))
        with pytest.raises(Refused, match="seal"):
            opened(with_old_seal(other, document["seal"]))
    for path, value in leaves({key: each for key, each in document.items() if key != "content"}):
        for each in others(value):
            with pytest.raises(Refused):
                check(json.dumps(changed(document, path, each)).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_bound_is_there(kind: str) -> None:
    assert content_of(kind)["bound"]["kind"] == kind


@pytest.mark.parametrize("name", mostly_at_night([*CASES, *KINDS], [CASES[0], *KINDS]))
def test_under_a_new_seal_only_premises_change(name: str) -> None:
    """Every number of the schedule and of the claims is needed; nothing but a premise can be another."""
    content = content_of(name)
    assert accepted(content)
    for path, value in some_of_each_kind(leaves(content)):
        for other in others(value):
            if not accepted(changed(content, path, other)):
                continue
            assert type(other) is type(value), (path, value, other)
            assert any(kind_of(path).startswith(given) for given in GIVEN), (path, value, other)


@pytest.mark.parametrize("name", CASES)
def test_rows_cannot_be_dropped_or_doubled(name: str) -> None:
    """Of stages, lanes, tasks, messages and claims; a choice of a bound may stand twice, it is one of several."""
    may = "problem", "bound.choices", "bound.proof.cases.groups.rows", "bound.several.proof.tables"
    content = content_of(name)
    for path, rows in some_of_each_kind(lists(content)):
        kind = kind_of(path)
        if kind.startswith(may):
            continue
        for other in (rows[:-1], rows[1:], [*rows, rows[-1]], []):
            assert not accepted(changed(content, path, other)), (path, other)


@pytest.mark.parametrize("name", CASES)
def test_fields_cannot_be_missing_or_added(name: str) -> None:
    content = content_of(name)
    seen: Counter[str] = Counter()
    stack: list[tuple[Path, Any]] = [((), content)]
    while stack:
        path, value = stack.pop()
        inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        stack += [((*path, key), each) for key, each in inside]
        if not isinstance(value, dict) or seen[kind_of(path)] > 4:
            continue
        seen[kind_of(path)] += 1
        for without in value:
            fewer = {key: each for key, each in value.items() if key != without}
            assert not accepted(changed(content, path, fewer) if path else fewer), (path, without)
        more = {**value, "more": 1}
        assert not accepted(changed(content, path, more) if path else more), path


@settings(max_examples=examples(100))
@given(st.sampled_from(CASES), st.data())
def test_two_changes_of_the_schedule_do_not_hide_each_other(name: str, data: st.DataObject) -> None:
    """Start and end of a task or message moved together: it is too early or waits for nothing."""
    content = content_of(name)
    rows = [
        ("lanes", lane, "tasks", at)
        for lane, each in enumerate(content["schedule"]["lanes"])
        for at in range(len(each["tasks"]))
    ]
    rows += [("messages", at) for at in range(len(content["schedule"]["messages"]))]
    path = data.draw(st.sampled_from(rows))
    row: Any = content["schedule"]
    for key in path:
        row = row[key]
    by = data.draw(st.integers(-5, 5).filter(bool))
    moved = [*row[:-2], row[-2] + by, row[-1] + by]
    if data.draw(st.booleans()):
        after = data.draw(st.sampled_from(rows))  # and another row with it
        other: Any = content["schedule"]
        for key in after:
            other = other[key]
        content = changed(content, ("schedule", *after), [*other[:-2], other[-2] + by, other[-1] + by])
        if after == path:
            moved = other
    if moved != row or after != path:
        assert (
            not accepted(changed(content, ("schedule", *path), moved)) or content["schedule"]["kind"] == "periodic"
        )
