"""Results of the figures' cells made by hand: every cell of a suite, with rates from a rule."""

from collections.abc import Callable
from typing import Any

from pipebench.domain.artefact import Cell, Finding, Result
from pipebench.domain.row import Row
from pipebench.hooks.reproduction import Reproduction

Rule = Callable[[str, dict[str, Any]], dict[str, Any] | None]
"""(contender's key, the cell's place) to fields of its row; None: infeasible."""


def results(figure: Reproduction, rule: Rule, full: bool = False) -> list[Result]:
    """A row for each cell of the suite. A rule may give status; rates are `throughput`."""
    return [Result(cell=cell, row=_row(cell, rule)) for cell in figure.suite(full)]


def _row(cell: Cell, rule: Rule) -> Row:
    fields = rule(str(cell.at["series"]), dict(cell.at))
    status = "infeasible" if fields is None else "ok"
    common: dict[str, Any] = {
        "model": "made",
        "profile": "made",
        "cluster": "summit",
        "devices": cell.devices,
        "mini_batch": cell.mini_batch,
        "regime": "sync",
        "problem_id": "",
        "workload_id": "",
        "planner": cell.planner,
        "status": status,
    }
    return Row(**common | (fields or {}))


def judged(figure: Reproduction, rule: Rule) -> dict[str, Finding]:
    """Findings by the name of their claim."""
    found = figure.judge(results(figure, rule))
    assert [finding.claim for finding in found] == list(figure.claims)
    return {finding.claim.name: finding for finding in found}
