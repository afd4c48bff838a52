"""Results of the figures' cells made by hand: every cell of a suite, with rates from a rule."""

from collections.abc import Callable
from typing import Any

from pipebench.domain.artefact import Finding, Result
from pipebench.hooks.reproduction import Reproduction
from tests.artefacts.results import row_result

Rule = Callable[[str, dict[str, Any]], dict[str, Any] | None]
"""(contender's key, the cell's place) to fields of its row; None: infeasible."""


def results(figure: Reproduction, rule: Rule, full: bool = False) -> list[Result]:
    """A row for each cell of the suite. A rule may give status; rates are `throughput`."""
    rows = ((cell, rule(str(cell.at["series"]), dict(cell.at))) for cell in figure.suite(full))
    return [
        row_result(cell, "infeasible") if fields is None else row_result(cell, **fields) for cell, fields in rows
    ]


def judged(figure: Reproduction, rule: Rule) -> dict[str, Finding]:
    """Findings by the name of their claim."""
    found = figure.judge(results(figure, rule))
    assert [finding.claim for finding in found] == list(figure.claims)
    return {finding.claim.name: finding for finding in found}
