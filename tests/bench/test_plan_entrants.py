"""Plans out of files, as planners."""

from typing import Any, cast

import pytest
from msgspec.structs import replace

from pipebench.bench import plan_entrants
from pipebench.documents.document import PlannedProblem
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE


def test_a_plan_for_the_very_problem_took_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite checks it when it scores it; that time is no planner's."""
    monkeypatch.setattr(plan_entrants, "check_plan", lambda *given: pytest.fail("checked during the search"))
    ready = plan_entrants.ready_plan("p.json", PlannedProblem(problem=PROBLEM, plan=PLAN, schedule=SCHEDULE))
    result = ready.load()(PROBLEM, cast(Any, None))
    assert (result.plan, result.schedule, result.notices) == (PLAN, SCHEDULE, ())


def test_a_plan_for_the_same_model_with_other_options_says_so() -> None:
    other = replace(PROBLEM, mini_batch=2 * PROBLEM.mini_batch)
    ready = plan_entrants.ready_plan("p.json", PlannedProblem(problem=other, plan=PLAN, schedule=SCHEDULE))
    result = ready.load()(PROBLEM, cast(Any, None))
    assert result.notices == (f"planned for another problem of {PROBLEM.profile.name}",)
