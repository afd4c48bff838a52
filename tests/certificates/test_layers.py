"""Certificates of bounds from layers: the checker finds the same, and refuses what does not follow."""

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pipebench.bounds.by_group.layers import LayersProof
from pipebench.certificates import group_rows
from pipebench.certificates.bound_kinds import check_bound
from pipebench.certificates.check import check
from pipebench.certificates.document import Part, Refused, written
from pipebench.certificates.layer_check import Classes, Load
from pipebench.certificates.problem_premises import read_problem
from pipebench.certificates.write import certificate, problem_part
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Pins, Problem
from tests.bounds.test_layers_bound import ALONE, alike, fast_links, layers, proof_of
from tests.nightly import examples
from tests.plugins.running import services

BOUND_NS = 24
"""Thirteen layers of 6 ns on four devices: one of them has four."""


def said(proof: LayersProof) -> Any:
    """The part `bound` of a certificate."""
    made = {"kind": "layers", "over": "plans of whole operators", "proof": proof.document()}
    return json.loads(json.dumps(made))


def checked_ns(problem: Problem, document: Any) -> int:
    return check_bound(read_problem(Part(problem_part(problem), "problem")), Part(document, "bound"))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(alike())
def test_the_checker_finds_the_same_bound(problem: Problem) -> None:
    proof = proof_of(problem)
    assume(proof is not None)
    assert proof is not None
    document = said(proof)
    assert checked_ns(problem, document) == proof.claimed_ns
    document["proof"]["claimed_ns"] += 2 + proof.claimed_ns
    with pytest.raises(Refused, match=r"holds more than counts in \d+ ns"):
        checked_ns(problem, document)


def thirteen() -> Problem:
    return layers(13, 4, 4 * 23, mini_batch=1, pins=ALONE)


def test_it_is_in_the_certificate_of_a_plan() -> None:
    problem, ends = layers(13, 4, mini_batch=1, mode="async", pins=ALONE), [4, 7, 10, 13]
    stages = tuple(
        Stage(operators=tuple(f"op{at}" for at in range(first, end)), devices=(device,), micro_batch=1)
        for device, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True))
    )
    plan = Plan(stages=stages)
    schedule = services().schedule("1f1b*", problem, plan)
    made = json.loads(certificate(problem, plan, schedule, {}).data)["content"]
    assert made["bound"]["kind"] == "layers"
    proven = check(written(made))
    assert (proven.bound_ns, proven.time_ns) == (BOUND_NS, BOUND_NS)


def _group(proof: dict[str, Any], at: int = 0) -> Any:
    return proof["cases"][0]["groups"][at]


def _longer(proof: dict[str, Any]) -> None:
    proof["claimed_ns"] = BOUND_NS + 1


def _quicker(proof: dict[str, Any]) -> None:
    _group(proof)["rows"][0][0][0] -= 1


def _less_time(proof: dict[str, Any]) -> None:
    proof["every_ns"], proof["claimed_ns"] = 1, BOUND_NS + 2


def _other_memory(proof: dict[str, Any]) -> None:
    proof["memory_bytes"] -= 1


def _no_case(proof: dict[str, Any]) -> None:
    proof["cases"].pop()


def _two_pipelines(proof: dict[str, Any]) -> None:
    proof["cases"][0]["pipelines"] = 2


def _no_group(proof: dict[str, Any]) -> None:
    proof["cases"][0]["groups"].pop()


def _other_group(proof: dict[str, Any]) -> None:
    _group(proof)["turns"] = 2


def _one_twice(proof: dict[str, Any]) -> None:
    proof["classes"][0][1] = proof["classes"][0][0]


def _one_less(proof: dict[str, Any]) -> None:
    proof["classes"][0].pop()


def _no_operator(proof: dict[str, Any]) -> None:
    proof["classes"][0][0] = 13


def _no_class(proof: dict[str, Any]) -> None:
    proof["classes"] = []


def _no_list(proof: dict[str, Any]) -> None:
    proof["classes"] = [3]


def _many_classes(proof: dict[str, Any]) -> None:
    proof["classes"] = [[0]] * 33


def _first_last(proof: dict[str, Any]) -> None:
    proof["last"] = 3


def _no_weights(proof: dict[str, Any]) -> None:
    proof["cases"][0]["weights"] = []


def _heavier(proof: dict[str, Any]) -> None:
    proof["cases"][0]["weights"][0] *= 2


def _lighter(proof: dict[str, Any]) -> None:
    proof["cases"][0]["weights"][0] = 0


def _stronger(proof: dict[str, Any]) -> None:
    proof["cases"][0]["of_a_device"] *= 2


def _no_price(proof: dict[str, Any]) -> None:
    _group(proof)["prices"] = []


def _only_memory(proof: dict[str, Any]) -> None:
    _group(proof)["prices"] = [[0, 1]]


def _no_rows(proof: dict[str, Any]) -> None:
    _group(proof)["rows"] = []


def _short_row(proof: dict[str, Any]) -> None:
    _group(proof)["rows"][0][0].pop()


def _below_zero(proof: dict[str, Any]) -> None:
    _group(proof)["rows"][0][0][1] = -1


def _unknown(proof: dict[str, Any]) -> None:
    _group(proof)["more"] = 1


CHANGES: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_longer, r"groups\[0\]: holds more than counts in 24 ns"),
    (_quicker, r"groups\[0\]: holds more than counts in 23 ns"),
    (_less_time, r"groups\[0\]: holds more than counts in 25 ns"),
    (_other_memory, r"memory_bytes: is not that of a device"),
    (_no_case, r"cases: are not those of all pipelines"),
    (_two_pipelines, r"cases: are not those of all pipelines"),
    (_no_group, r"groups: are not those of all sizes and turns on 4 devices"),
    (_other_group, r"groups: are not those of all sizes and turns on 4 devices"),
    (_one_twice, r"classes: are not of different operators"),
    (_one_less, r"counts no more than the devices: 23 ns may suffice"),
    (_no_operator, r"it must be from 0 to 12"),
    (_no_class, r"classes: are not lists of operators"),
    (_no_list, r"classes: are not lists of operators"),
    (_many_classes, r"classes: are more than 32"),
    (_first_last, r"last: is an operator that another one reads from"),
    (_no_weights, r"weights: are not 1, one of each class"),
    (_heavier, r"groups\[0\]: holds more than counts in 23 ns"),
    (_lighter, r"counts no more than the devices"),
    (_stronger, r"counts no more than the devices"),
    (_no_price, r"prices: are none"),
    (_only_memory, r"groups\[0\]: holds more than counts"),
    (_no_rows, r"rows: are not 1 lists, one of each class"),
    (_short_row, r"is not of rows of three numbers"),
    (_below_zero, r"is -1, it must be from 0"),
    (_unknown, r"which is none of a certificate"),
]


@pytest.mark.parametrize(("change", "words"), CHANGES, ids=lambda each: getattr(each, "__name__", ""))
def test_a_changed_proof_is_refused(change: Callable[[dict[str, Any]], None], words: str) -> None:
    proof = proof_of(thirteen())
    assert proof is not None
    document = said(proof)
    assert checked_ns(thirteen(), document) == BOUND_NS
    change(document["proof"])
    with pytest.raises(Refused, match=words):
        checked_ns(thirteen(), document)


@pytest.mark.parametrize("memory", [64, 65])
def test_several_pipelines_are_checked_with_the_state_of_all(memory: int) -> None:
    """See test_layers_bound: two pipelines of three layers fit into 65 bytes, and not into 64."""
    problem = fast_links(layers(3, 2, memory, mini_batch=2, pins=Pins(micro_batch=1)))
    proof = proof_of(problem)
    assert proof is not None
    assert [case.case.pipelines for case in proof.cases] == [1, 2]
    assert checked_ns(problem, said(proof)) == {64: 24, 65: 18}[memory]


def test_what_is_live_at_the_instant_is_before_the_last_operator() -> None:
    """Of two operators that nothing reads from one is looked at; what the other one saves may not count."""
    proof = proof_of(thirteen())
    assert proof is not None
    document = said(proof)
    problem = problem_part(thirteen())
    problem["tensors"] = [each for each in problem["tensors"] if each[1] != 11]  # nothing reads from op11
    with pytest.raises(Refused, match="has what an operator saves that may have nothing live at the instant"):
        check_bound(read_problem(Part(problem, "problem")), Part(document, "bound"))


def test_a_check_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    proof = proof_of(thirteen())
    assert proof is not None
    monkeypatch.setattr(group_rows, "MOST_STEPS", 3)
    with pytest.raises(Refused, match="takes more than 3 steps to check"):
        checked_ns(thirteen(), said(proof))


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_a_load_exceeds_where_some_numbers_of_operators_do(data: st.DataObject) -> None:
    kinds = data.draw(st.integers(1, 3))
    counts = data.draw(st.lists(st.integers(0, 4), min_size=kinds, max_size=kinds))
    weights = data.draw(st.lists(st.integers(0, 9), min_size=kinds, max_size=kinds))
    prices = data.draw(st.integers(1, 3))
    each = st.lists(st.integers(0, 9), min_size=kinds, max_size=kinds)
    costs = data.draw(st.lists(each, min_size=prices, max_size=prices))
    if data.draw(st.booleans()):
        for here in costs:
            here[0] = -1
    have = data.draw(st.lists(st.integers(0, 25), min_size=prices, max_size=prices))
    limit = data.draw(st.integers(0, 40))
    classes = Classes(read_problem(Part(problem_part(thirteen()), "problem")), counts, [True] * kinds, 1, 1, 1)
    exceeds = any(
        sum(a * b for a, b in zip(numbers, weights, strict=True)) > limit
        and all(
            sum(number * cost for number, cost in zip(numbers, here, strict=True)) <= some
            for here, some in zip(costs, have, strict=True)
        )
        for numbers in product(
            *(range(count + 1) if costs[0][at] >= 0 else (0,) for at, count in enumerate(counts))
        )
    )
    assert Load(classes, weights, costs).may_exceed(limit, have) == exceeds
