"""Counts of cells and verdicts in words."""

from collections import Counter
from typing import Any

from pipebench.domain.artefact import Cell, Judgement, Result
from pipebench.report.claims.entries import about_cells, counts_text
from tests.artefacts.results import row_result


def result(status: Any, *expected: Any) -> Result:
    cell = Cell(at={}, planner="p", profile="net", devices=2, expected_failures=expected)
    return row_result(cell, status)


def test_failures_that_a_claim_expects_are_told_apart() -> None:
    results = [result("ok"), result("timeout", "timeout"), result("timeout"), result("memory", "timeout")]
    assert (
        about_cells(results)
        == "4 cells: 1 ok, 2 timeout (1 expected), 1 memory; 2 not judged: no answer of the planner"
    )
    assert [each.failed for each in results] == [False, False, True, True]
    assert about_cells([]) == "no cell was run"


def test_what_cannot_be_is_no_failure_whether_expected_or_not() -> None:
    assert not any(result(status).failed for status in ("infeasible", "unsupported", "ok"))


def test_verdicts_are_counted_in_a_fixed_order() -> None:
    counts: Counter[Judgement] = Counter({"does not hold": 1, "holds": 2})
    assert counts_text(counts) == "3 claims: 2 holds, 1 does not hold"
    assert counts_text(Counter({"holds": 1})) == "1 claim: 1 holds"
    assert counts_text(Counter()) == "no claim was judged"
