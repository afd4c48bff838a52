"""Certificates of the golden cases, which are small plans of every kind."""

from functools import cache

from pipebench.bench.score import judge
from pipebench.certificates.write import Certificate, certificate
from tests.acceptance.golden import Case, cases


@cache
def valid_cases() -> dict[str, Case]:
    """The golden cases of valid plans with a schedule, by name."""
    return {
        case.name: case
        for case in cases()
        if case.schedule is not None and judge(case.problem, case.plan, case.schedule).status == "valid"
    }


def of_case(case: Case) -> Certificate:
    """The certificate of a golden case."""
    assert case.schedule is not None
    return certificate(case.problem, case.plan, case.schedule, {"planner": case.name})
