"""Certificates of bounds from groups of devices: the checker finds the same, and refuses what does not follow."""

import json
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from pipebench.bounds.by_group.groups import GroupsProof, groups_proof
from pipebench.certificates import group_rows
from pipebench.certificates.bound_kinds import check_bound
from pipebench.certificates.check import check
from pipebench.certificates.document import Part, Refused, written
from pipebench.certificates.group_boxes import MOST_PAIRS, fit_together
from pipebench.certificates.problem_premises import read_problem
from pipebench.certificates.write import certificate, problem_part
from pipebench.check import check_schedule
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.simulation.simulate import simulate
from tests.bounds.drawn_problems import problems
from tests.bounds.test_groups_bound import tight_graphs
from tests.bounds.test_shared_bounds import with_memory
from tests.builders import chain_problem, cluster
from tests.certificates.test_round_trips import a_plan, certified
from tests.nightly import examples
from tests.plugins.running import services
from tests.plugins.search.tight import tight
from tests.plugins.search.tiny import tiny


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_checker_finds_the_same_bound_where_memory_just_fits(data: st.DataObject) -> None:
    problem = data.draw(problems())
    plan = data.draw(a_plan(problem))
    assume(plan is not None)
    assert plan is not None
    for name in ("1f1b*", "1f1b-rr", "greedy"):
        try:
            schedule = services().schedule(name, problem, plan)
        except PipebenchError:
            continue
        verdict = check_schedule(problem, plan, schedule)
        if verdict.status != "valid":
            continue
        fitting = with_memory(problem, plan, max(1, *verdict.peak_bytes.values()))
        if simulate(fitting, plan, schedule).period_ns != 0:
            certified(fitting, plan, schedule)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3), max_size=4),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_choices_fit_where_one_of_each_does(choices: list[list[tuple[int, int]]], room: int, most: int) -> None:
    every = product(*choices)
    fits = any(sum(t for t, _ in each) <= room and sum(m for _, m in each) <= most for each in every)
    assert fit_together(choices, room, most) == fits


def test_the_quickest_choice_may_leave_no_memory_for_the_next() -> None:
    assert fit_together([[(1, 10), (5, 1)], [(1, 5)]], 6, 10)
    assert not fit_together([[(1, 10), (5, 1)], [(1, 5)]], 5, 10)


def _trade_offs(count: int, operators: int) -> list[list[tuple[int, int]]]:
    """Choices of operators of which no sum is better than another: time for memory, one for one."""
    drawn = random.Random(1)
    return [[(ns, 10**9 - ns) for ns in drawn.sample(range(10**9), count)] for _ in range(operators)]


def test_pairs_of_time_and_memory_do_not_multiply_without_end() -> None:
    """A certificate of 55 kB never ended: with 60 rows of each of four operators there are 13 million pairs."""
    steps: list[int] = []
    assert fit_together(_trade_offs(60, 4), 2 * 10**9, 2 * 10**9, steps.append)
    assert max(steps) <= 60 * MOST_PAIRS


def test_a_check_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, document = divided()
    monkeypatch.setattr(group_rows, "MOST_STEPS", 1000)
    with pytest.raises(Refused, match="takes more than 1000 steps to check"):
        check_bound(problem, Part(document, "bound"))


def said(proof: GroupsProof) -> Any:
    """The part `bound` of a certificate."""
    made: dict[str, Any] = {"kind": "groups", "over": "plans of whole operators", "proof": proof.document()}
    if proof.several is not None:
        made["several"] = {"proof": proof.several.document()}
    return json.loads(json.dumps(made))


@settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(tight_graphs())
@example(tiny(613, "async", kind="chain"))  # operators that might seem to go on one device are on two
def test_one_ns_more_is_refused(problem: Problem) -> None:
    proof = groups_proof(problem, 0, 1)
    assume(proof is not None)
    assert proof is not None
    part = read_problem(Part(problem_part(problem), "problem"))
    document = said(proof)
    assert check_bound(part, Part(document, "bound")) == proof.claimed_ns
    document["proof"]["claimed_ns"] += 1
    with pytest.raises(
        Refused, match=f"{proof.claimed_ns} ns suffice|does not prove the {proof.claimed_ns + 1} ns"
    ):
        check_bound(part, Part(document, "bound"))


def content() -> Any:
    """Three operators of 6 ns on two devices; replicas would reduce gradients for 1000 ns. The bound is 12 ns."""
    problem = chain_problem([2, 2, 2], [4, 4, 4], cluster(2), activations=[0, 1, 1, 0], weights=[1000] * 3)
    stages = (
        Stage(operators=("op0", "op1"), devices=(0,), micro_batch=1),
        Stage(operators=("op2",), devices=(1,), micro_batch=1),
    )
    plan = Plan(stages=stages)
    return json.loads(certificate(problem, plan, services().schedule("1f1b*", problem, plan), {}).data)["content"]


def test_it_is_the_proof_of_the_bound() -> None:
    made = content()
    assert made["bound"]["kind"] == "groups"
    assert check(written(made)).bound_ns == 12


def _longer(proof: dict[str, Any]) -> None:
    proof["claimed_ns"] = 13


def _cheaper(proof: dict[str, Any]) -> None:
    for case in proof["cases"]:
        for group in case["groups"]:
            group["rows"] = [
                [[*(each // 2 for each in row[:-1]), row[-1]] for row in rows] for rows in group["rows"]
            ]


def _later(proof: dict[str, Any]) -> None:
    proof["every_ns"] = -1


def _fewer_operators(proof: dict[str, Any]) -> None:
    proof["operators"] = [0, 1]


def _twice(proof: dict[str, Any]) -> None:
    proof["operators"] = [0, 1, 1]


def _more_memory(proof: dict[str, Any]) -> None:
    proof["memory_bytes"] += 1


def _fewer_cases(proof: dict[str, Any]) -> None:
    proof["cases"].pop()


def _fewer_groups(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"].pop()


def _fewer_devices(proof: dict[str, Any]) -> None:
    proof["devices"] = 3


def _fewer_rows(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"][0]["rows"].pop()


def _short_row(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"][0]["rows"][0][0].pop()


def _below_zero(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"][0]["rows"][0][0][0] = -1


def _fewer_tensors(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"][0]["cuts"][0].pop()


def _fewer_costs(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"][0]["cuts"][0][0].pop()


def _another_cut(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"][0]["rows"][0][0][7] = 1


def _not_the_last(proof: dict[str, Any]) -> None:
    proof["last"] = 1


def _another_kind(proof: dict[str, Any]) -> None:
    proof["cases"][0]["pattern"] = True


def _free_messages(proof: dict[str, Any]) -> None:
    """Operators that take no time, which lets the devices hold more."""
    for case in proof["cases"]:
        for group in case["groups"]:
            group["rows"] = [[[0, 0, *row[2:]] for row in rows] for rows in group["rows"]]


def _fewer_splits(proof: dict[str, Any]) -> None:
    proof["splits"].pop()


def _several(proof: dict[str, Any]) -> None:
    proof["cases"][0]["alone"] = False


def _another_size(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"][0]["sizes"] = [2]


def _neither_full_nor_not(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"][0]["rows"][0][0][6] = 2


@pytest.mark.parametrize(
    ("spoilt", "words"),
    [
        (_longer, "12 ns suffice"),
        (_cheaper, "11 ns suffice"),
        (_later, "must be from 0"),
        (_fewer_operators, "is none of the operators"),
        (_twice, "different ones"),
        (_more_memory, "is not that of a device"),
        (_fewer_cases, "are not those of all copies, groups and micro-batches"),
        (_fewer_groups, "are not those of all sizes and turns"),
        (_fewer_devices, "must be from 1 to 2"),
        (_fewer_rows, "are not 3 lists"),
        (_short_row, "rows of eight numbers"),
        (_below_zero, "must be from 0"),
        (_fewer_tensors, "is not of 2 tensors"),
        (_fewer_costs, "has not four numbers"),
        (_another_cut, "must be from 0 to 0"),
        (_not_the_last, "another one reads from it"),
        (_another_kind, "are not those of all copies, groups and micro-batches"),
        (_free_messages, "11 ns suffice"),
        (_fewer_splits, "of all cases"),
        (_several, "are not those of all copies, groups"),
        (_another_size, "must be from 0 to 1"),
        (_neither_full_nor_not, "must be from 0 to 1"),
    ],
)
def test_what_does_not_follow_is_refused(spoilt: Callable[[dict[str, Any]], None], words: str) -> None:
    made = content()
    spoilt(made["bound"]["proof"])
    made["claims"]["bound_ns"] = made["bound"]["proof"]["claimed_ns"]
    with pytest.raises(Refused, match=words):
        check(written(made))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("regime", "sync", "are not those of all copies, groups and micro-batches"),
        ("constants", [0], "different ones that need the input"),
        ("mini_batch", 2**20 + 1, "samples"),
        ("overlap_numerator", 1, "nobody waits for"),
    ],
)
def test_other_problems_have_no_such_proof(name: str, value: Any, words: str) -> None:
    made = content()
    made["problem"][name] = value
    with pytest.raises(Refused, match=words):
        check_bound(read_problem(Part(made["problem"], "problem")), Part(made["bound"], "bound"))


def divided() -> tuple[Any, Any]:
    """Four operators on two devices with little memory. A part of their times is for a run of any size."""
    problem = tight(1, "sync", operators=4, devices=2)
    proof = groups_proof(problem, 0, 10**6)
    assert proof is not None
    return read_problem(Part(problem_part(problem), "problem")), said(proof)


def test_sizes_of_micro_batches_are_divided_and_each_part_is_looked_at() -> None:
    problem, document = divided()
    splits = document["proof"]["splits"]
    (at,) = (at for at, split in enumerate(splits) if split and document["proof"]["cases"][at]["copies"] == 1)
    assert check_bound(problem, Part(document, "bound")) == document["proof"]["claimed_ns"]
    operator, size, below, above = splits[at]
    deep: list[Any] = []
    for _ in range(120):
        deep = [operator, size, deep, []]
    for spoilt, words in (
        ([], "ns suffice"),
        ([operator, size, below], "a split that is not of an operator"),
        ([4, size, below, above], "must be from 0 to 3"),
        ([operator, 9, below, above], "must be from 1 to 8"),
        (deep, "more than 100 in each other"),
        ({"operator": operator}, "a split that is not of an operator"),
    ):
        splits[at] = spoilt
        with pytest.raises(Refused, match=words):
            check_bound(problem, Part(document, "bound"))


def test_with_a_flush_what_several_pipelines_take_is_proven_too() -> None:
    """Two operators whose state fits once on each device."""
    problem = chain_problem(
        [2] * 2, [4] * 2, cluster(2, memory=27, bandwidth=1e18), weights=[10] * 2, mini_batch=2, mode="sync"
    )
    proof = groups_proof(problem, 0, 1)
    assert proof is not None
    part, document = read_problem(Part(problem_part(problem), "problem")), said(proof)
    assert check_bound(part, Part(document, "bound")) == proof.claimed_ns
    less = said(proof)
    less["several"]["proof"]["claimed_ns"] = proof.claimed_ns - 1
    with pytest.raises(Refused, match="does not prove"):
        check_bound(part, Part(less, "bound"))
    del document["several"]
    with pytest.raises(Refused, match="lacks the field 'several'"):
        check_bound(part, Part(document, "bound"))


def test_a_problem_with_overlap_has_no_times_that_others_wait_for() -> None:
    made = content()
    made["problem"]["overlap_numerator"] = 1
    proof = made["bound"]["proof"]
    problem = read_problem(Part(made["problem"], "problem"))
    with pytest.raises(Refused, match="a message that nobody waits for"):
        check_bound(problem, Part(made["bound"], "bound"))
    for case in proof["cases"]:
        for group in case["groups"]:
            group["cuts"] = [[[*sent[:2], 0, 0] for sent in cut] for cut in group["cuts"]]
    with pytest.raises(Refused, match="an operator that nobody waits for"):
        check_bound(problem, Part(made["bound"], "bound"))
