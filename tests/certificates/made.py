"""Certificates of the golden cases, which are small plans of every kind, and of small bounds of every kind."""

from functools import cache
from typing import Any

from msgspec.structs import replace

from pipebench.bench.score import judge
from pipebench.certificates.write import Certificate, certificate
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Pins, Problem
from tests.acceptance.golden import Case, cases
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.plugins.running import services


@cache
def valid_cases() -> dict[str, Case]:
    """The golden cases of valid plans with a schedule, by name."""
    return {
        case.name: case
        for case in cases()
        if case.schedule is not None and judge(case.problem, case.plan, case.schedule).status == "valid"
    }


def of_kind(kind: str) -> Certificate:
    """The certificate of a plan of a small problem with such a bound (pipebench.bounds.time)."""
    if kind == "fill":
        return of_case("copies of replicas, 4 pinned")
    problem, plan, scheduler = _small(kind)
    return certificate(problem, plan, services().schedule(scheduler, problem, plan), {})


def _small(kind: str) -> tuple[Problem, Plan, str]:
    chain = stages_plan([[0], [1]])
    if kind == "work":
        return chain_problem([3, 5], [4, 8], cluster(2), mode="sync", mini_batch=2), chain, "1f1b"
    if kind == "operator":
        return chain_problem([0, 9], [0, 9], cluster(2), weights=[0, 100], mini_batch=2), chain, "1f1b*"
    if kind == "path":
        return chain_problem([3, 5], [4, 8], cluster(2), mode="sync"), chain, "1f1b"
    if kind == "reduce":
        pins = Pins(data_parallel=2)
        problem = chain_problem([3, 3], [3, 3], cluster(2), weights=[500, 500], mini_batch=4, pins=pins)
        return problem, stages_plan([[0, 1]], replicas=[2], micro_batch=2), "1f1b*"
    if kind == "memory":
        pins, on = Pins(micro_batch=1, data_parallel=1), cluster(2, memory=4000)
        costs: dict[str, Any] = {"weights": [1500, 2000], "saved": [1000, 0], "mode": "sync", "mini_batch": 4}
        problem = replace(chain_problem([100, 100], [200, 100], on, pins=pins, **costs), overlap=1.0)
        return problem, Plan(stages=tuple(replace(each, recompute="stage") for each in chain.stages)), "1f1b"
    if kind == "layers":
        pins, on = Pins(data_parallel=1), cluster(4)
        problem = chain_problem([2] * 13, [4] * 13, on, weights=[10] * 13, saved=[3] * 13, mini_batch=1, pins=pins)
        groups = [0, 1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]
        return problem, stages_plan(groups), "1f1b*"
    pins, tensors = Pins(data_parallel=1), [(0, (1,), 900), (1, (2,), 0), (1, (3,), 0), (1, (4,), 0)]
    problem = dag_problem([3, 3, 4, 4, 4], [6, 6, 8, 8, 8], tensors, cluster(2), pins=pins)
    return problem, stages_plan([[0, 1, 2, 3, 4]]), "1f1b"


@cache
def of_case(name: str) -> Certificate:
    """The certificate of a golden case, made once."""
    case = valid_cases()[name]
    assert case.schedule is not None
    return certificate(case.problem, case.plan, case.schedule, {"planner": case.name})
