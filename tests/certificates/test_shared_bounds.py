"""Certificates of many plans of one problem: its bound is proven once, and each is what it is alone."""

import pytest

from pipebench.bounds import TimeBound
from pipebench.certificates import write
from pipebench.certificates.write import BoundParts, certificate
from pipebench.domain.problem import Problem
from tests.builders import chain_problem, cluster, stages_plan
from tests.plugins.running import services


def test_plans_of_one_problem_share_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    bounded: list[str] = []
    time_bound = write.time_bound

    def counted(problem: Problem, split: bool = False) -> TimeBound:
        bounded.append(problem.problem_id)
        return time_bound(problem, split)

    problems = [chain_problem([1, 2, 3], [2, 4, 6], cluster(3), mini_batch=size, mode="sync") for size in (4, 8)]
    cases = [
        (problem, plan, services().schedule(name, problem, plan))
        for problem in problems
        for plan in (stages_plan([[0], [1], [2]]), stages_plan([[0, 1], [2]]))
        for name in ("1f1b", "gpipe")
    ]
    alone = [certificate(*case, {}).data for case in cases]
    monkeypatch.setattr(write, "time_bound", counted)
    bounds = BoundParts()
    assert [certificate(*case, {}, bounds).data for case in cases] == alone
    assert bounded == [problem.problem_id for problem in problems]
