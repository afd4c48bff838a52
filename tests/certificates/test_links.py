"""Certificates of bounds from links: the checker finds what the bound found, and refuses what does not follow."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pipebench.bounds import time_bound
from pipebench.certificates.check import check
from pipebench.certificates.document import Refused, written
from pipebench.certificates.write import certificate
from pipebench.check import check_schedule
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from tests.bounds.test_links_bound import ALONE, plans_on_devices, slow_links
from tests.builders import cluster, dag_problem
from tests.nightly import examples
from tests.plugins.running import services

BOUND_NS = 42


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(slow_links(), st.randoms(use_true_random=False))
def test_the_checker_finds_the_same_bound(problem: Problem, random: Any) -> None:
    bound = time_bound(problem)
    assume(bound.kind == "links")
    for plan in plans_on_devices(problem, random)[:2]:
        try:
            schedule = services().schedule(
                "greedy" if problem.regime.mode == "sync" else "periodic-bnb", problem, plan
            )
        except PipebenchError:
            continue
        if check_schedule(problem, plan, schedule).status == "valid":
            assert check(certificate(problem, plan, schedule, {}).data).bound_ns == bound.ns


def content() -> Any:
    """Two operators that stay together, and three behind them, of which one fits beside (see test_links_bound)."""
    tensors = [(0, (1,), 900), (1, (2,), 0), (1, (3,), 0), (1, (4,), 0)]
    problem = dag_problem([3, 3, 4, 4, 4], [6, 6, 8, 8, 8], tensors, cluster(2), pins=ALONE)
    stage = Stage(operators=("op0", "op1", "op2", "op3", "op4"), devices=(0,), micro_batch=1)
    plan = Plan(stages=(stage,))
    data = certificate(problem, plan, services().schedule("1f1b", problem, plan), {}).data
    return json.loads(data)["content"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"claimed_ns": BOUND_NS + 1}, "42 ns suffice"),
        ({"devices": 3}, "it must be from 1 to 2"),
        ({"devices": 1}, r"proof\.devices: are not the 2 of a plan"),
        ({"every_ns": 0, "loads_ns": [6, 3, 12, 12, 12], "claimed_ns": 44}, "43 ns suffice"),
        ({"loads_ns": [9, 9, 12, 12]}, "are 4 of 5"),
        ({"links": []}, "41 ns suffice"),
        ({"links": [[0, 1, 41]]}, "41 ns suffice"),
        ({"links": [[0, 2, 900]]}, "is no tensor that one operator sends to another"),
        ({"links": [[1, 0, 900]]}, "is no tensor that one operator sends to another"),
        ({"links": [[0, 9, 900]]}, "is no tensor that one operator sends to another"),
        ({"forward_ns": [0, 0, 0, 0, 0]}, "41 ns suffice"),
        ({"back_ns": [0, 0, 0, 0, 0]}, "41 ns suffice"),
        ({"whole": 1}, "are those of operators that nobody waits for"),
        ({"first": 5}, "it must be from 0 to 4"),
        ({"first": 2}, "41 ns suffice"),
        ({"threshold_ns": 12}, "it must be from 0 to 11"),
    ],
)
def test_what_does_not_follow_is_refused(changes: dict[str, Any], words: str) -> None:
    made = content()
    assert made["bound"]["kind"] == "links"
    made["bound"]["proof"].update(changes)
    if "claimed_ns" in changes:
        made["claims"]["bound_ns"] = changes["claimed_ns"]
    with pytest.raises(Refused, match=words):
        check(written(made))


@pytest.mark.parametrize("name", ["forward_ns", "loads_ns", "links", "first", "devices"])
def test_every_field_is_needed(name: str) -> None:
    made = content()
    del made["bound"]["proof"][name]
    with pytest.raises(Refused, match=f"lacks the field '{name}'"):
        check(written(made))


def test_problems_with_replicas_have_no_such_proof() -> None:
    made = content()
    made["problem"]["pins"]["data_parallel"] = 0
    with pytest.raises(Refused, match="whose stages have one replica"):
        check(written(made))


def test_a_link_that_carries_any_number_of_messages_parts_all() -> None:
    made = content()
    made["problem"]["link_mode"] = "delay"
    with pytest.raises(Refused, match=r"proof\.links: are not there"):
        check(written(made))


def test_replicas_of_several_devices_have_no_such_proof() -> None:
    made = content()
    made["problem"]["pins"]["tensor_parallel"] = made["plan"]["stages"][0]["tensor_parallel"] = 2
    for devices in (made["plan"]["stages"][0], made["schedule"]["lanes"][0]):
        devices["devices"] = [0, 1]
    with pytest.raises(Refused, match="whose stages have one replica on one device"):
        check(written(made))


def test_nobody_waits_for_a_constant() -> None:
    made = content()
    made["problem"]["constants"] = [0]
    with pytest.raises(Refused, match=r"nobody waits for|no tensor that"):
        check(written(made))
