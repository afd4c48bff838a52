"""Every artefact that ships judges whatever rows there are: cells that lack, failures, rows without a figure."""

import random
from collections.abc import Sequence
from typing import Any

import pytest

from pipebench.domain.artefact import Cell, Result
from pipebench.domain.row import Status
from pipebench.hooks.manager import Host
from tests.artefacts.results import row_result

HOST = Host()
ARTEFACTS = HOST.slot("artefacts")
FAILURES = ("infeasible", "invalid_plan", "unsupported", "timeout", "memory", "crashed")


def result(cell: Cell, chance: random.Random) -> Result:
    """A row that could come of the cell; where it has a plan, a figure in twenty is not known."""

    def some(value: float) -> float | None:
        return value if chance.random() < 0.95 else None

    plan: dict[str, Any] = {"status": chance.choice(FAILURES)}
    if chance.random() < 0.7:
        seconds = chance.uniform(0.1, 2.0)
        plan = {
            "status": "ok",
            "simulated_s": some(seconds),
            "throughput": some(100 / seconds),
            "search_cpu_s": some(chance.uniform(0.01, 9.0)),
            "search_wall_s": some(chance.uniform(0.01, 9.0)),
            "claimed_native": some(1.0),
            "depth": chance.choice((None, 4, 8)),
            "stages": chance.randint(1, 8),
            "micro_batch": (chance.choice((1, 2, 4)),),
            "replicas": (1, 2),
            "notices": ("a remark", "conv1: batch/32", "lstm: layers/2 batch/4"),
        }
    counters = {"transitions": 100, "atoms": 15000}
    return row_result(cell, **plan, claimed_s=some(chance.uniform(0.1, 2.0)), counters=counters)


def results(cells: Sequence[Cell], seed: int, share: float) -> list[Result]:
    chance = random.Random(seed)
    return [result(cell, chance) for cell in cells if chance.random() < share]


@pytest.mark.parametrize(
    ("name", "claim", "status"),
    [
        ("rannc/coarsening", "without blocks the search does not end", "timeout"),
        ("rannc/coarsening", "without blocks the search does not end", "memory"),
        ("graphpipe/table1", "Piper has no plan", "timeout"),
        ("pase/table1", "breadth-first blows up", "unsupported"),
    ],
)
def test_cells_whose_failure_makes_a_claim_hold_expect_it(name: str, claim: str, status: Status) -> None:
    """With every expected failure the claim holds, and no cell counts as failed; a cell elsewhere still does."""
    artefact = HOST.load(ARTEFACTS[name].component)()
    cells = artefact.suite(True)
    rows = [
        row_result(cell, status)
        if status in cell.expected_failures
        else row_result(
            cell, simulated_s=1.0, throughput=1.0, search_cpu_s=1.0, search_wall_s=1.0, depth=1, stages=1
        )
        for cell in cells
    ]
    assert any(each.is_expected for each in rows)
    assert not any(each.failed for each in rows)
    assert {f.claim.name: f.judgement for f in artefact.judge(rows)}[claim] == "holds"
    assert any(row_result(cell, "timeout").failed for cell in cells)


@pytest.mark.parametrize("name", ARTEFACTS)
@pytest.mark.parametrize("status", ["crashed", "invalid_plan", "skipped"])
def test_no_claim_is_judged_by_cells_without_an_answer(name: str, status: Status) -> None:
    """A planner that breaks down has shown neither that there is no plan nor that there is one."""
    artefact = HOST.load(ARTEFACTS[name].component)()
    rows = [row_result(cell, status) for cell in artefact.suite(True)]
    told = artefact.judge([row for row in rows if row.tells])
    assert {finding.judgement for finding in told} == {"claim only"}


@pytest.mark.parametrize("name", ARTEFACTS)
@pytest.mark.parametrize(("seed", "share"), [(1, 1.0), (2, 0.5), (3, 0.05)])
def test_any_rows_are_judged_claim_by_claim(name: str, seed: int, share: float) -> None:
    artefact = HOST.load(ARTEFACTS[name].component)()
    rows = results(artefact.suite(False), seed, share)
    findings = artefact.judge(rows)
    assert [finding.claim for finding in findings] == list(artefact.claims)
    assert all((finding.judgement == "claim only") or finding.measured for finding in findings)
    assert artefact.judge(rows) == findings
    figure = artefact.series(rows)
    assert artefact.series(rows) == figure
    for curve in (curve for panel in figure.panels for curve in panel.curves):
        assert len(curve.points) == len({x for x, _ in curve.points})
