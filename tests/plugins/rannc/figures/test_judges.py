"""Findings from made-up rows: each judgement can come out either way."""

from collections.abc import Callable
from typing import Any

import pytest

from pipebench.algorithms.chains.level_cuts import BALANCE
from pipebench.domain.artefact import Cell, Finding, Result
from pipebench.hooks.reproduction import Reproduction
from pipebench_rannc.figures.coarsening import SearchOnBlocks
from pipebench_rannc.figures.fig4 import BertThroughput
from pipebench_rannc.figures.fig5 import ResNetThroughput
from tests.artefacts.results import row_result


def result(cell: Cell, throughput: float | None, **more: Any) -> Result:
    """A cell with that throughput, None: infeasible."""
    status = "infeasible" if throughput is None else "ok"
    fields = {"status": status, "throughput": throughput, "stages": 4, "counters": {BALANCE: 1250}}
    return row_result(cell, **fields | more)


RATES = {
    "dp": 10.0,
    "megatron": 10.0,
    "megatron-kept": 9.0,
    "hybrid": 8.0,
    "2bw": 11.0,
    "model": 5.0,
    "paper": 10.0,
    "released": 10.0,
}


def rated(reproduction: Reproduction, rate: Callable[[str, float], float | None]) -> dict[str, Finding]:
    """Findings by claim where each cell has rate(series, layers)."""
    results = [
        result(cell, rate(str(cell.at["series"]), float(cell.at["layers"]))) for cell in reproduction.suite(False)
    ]
    return {finding.claim.name: finding for finding in reproduction.judge(results)}


def as_in_the_paper(series: str, layers: float) -> float | None:
    if (series == "megatron" and layers > 48) or (series in ("dp", "megatron-kept") and layers > 24):
        return None
    if series == "best":
        return 20.0 if layers <= 24 else 12.0
    return RATES[series]


def test_figure_4_as_the_paper_has_it() -> None:
    found = rated(BertThroughput(), as_in_the_paper)
    assert found["all models"].judgement == "holds"
    assert found["faster than GPipe-Hybrid"].judgement == "holds"
    assert found["faster than GPipe-Hybrid"].value == pytest.approx(1.25)
    assert found["closer for large models"].judgement == "holds"
    assert found["PipeDream-2BW is a little faster here and there"].judgement == "holds"
    larger = found["tensor parallelism holds larger models than data parallelism"]
    assert (larger.judgement, round(larger.value or 0, 2)) == ("holds", 1.95)
    five = found["five times larger"]
    assert (five.judgement, round(five.value or 0, 2)) == ("holds", 5.22)
    assert "recomputes by layer" in five.reason
    assert "With nothing recomputed Megatron-LM's is 1.27 billion" in five.reason
    level = found["as fast as Megatron-LM"]
    assert level.judgement == "depends"
    both = "RaNNC as printed 10/s (4 stages, balance 1.25) / Megatron-LM"
    assert f"1024 x 24: {both} 10/s (4 stages, balance 1.25) = 1.00" in level.measured
    assert f"1024 x 24: {both}, nothing recomputed 9/s (4 stages, balance 1.25) = 1.11" in level.measured
    assert "4 stages, balance 1.25" in found["faster than GPipe-Hybrid"].measured[0]


def test_figure_4_the_other_way() -> None:
    def opposite(series: str, layers: float) -> float | None:
        if series in ("paper", "released", "best"):
            return None if layers > 96 else 4.0
        return RATES[series] * (1 if series != "2bw" else 0.1)

    found = rated(BertThroughput(), opposite)
    assert found["all models"].judgement == "depends"
    assert found["faster than GPipe-Hybrid"].judgement == "does not hold"
    assert found["PipeDream-2BW is a little faster here and there"].judgement == "does not hold"
    assert found["as fast as Megatron-LM"].judgement == "does not hold"
    assert found["five times larger"].judgement == "does not hold"


def test_five_times_larger_holds_about_five() -> None:
    """2048 x 96 has 4.9 billion, 1024 x 96 has 1.2: four times; 12.9 over 1.2 is eleven."""

    def rate(most: float) -> Callable[[str, float], float | None]:
        return lambda series, layers: None if series == "megatron" and layers > most else 1.0

    whole = rated(BertThroughput(), rate(96))["five times larger"]
    assert (whole.judgement, round(whole.value or 0, 1)) == ("does not hold", 2.6)
    small = rated(BertThroughput(), rate(24))["five times larger"]
    assert (small.judgement, round(small.value or 0)) == ("does not hold", 10)


def test_figure_5_both_ways() -> None:
    def paper(series: str, layers: float) -> float | None:
        return None if series == "dp" and layers > 50 else {"model": 5.0}.get(series, 10.0)

    found = rated(ResNetThroughput(), paper)
    assert [finding.judgement for finding in found.values()] == ["holds", "holds"]
    found = rated(ResNetThroughput(), lambda series, layers: 10.0)
    assert found["all models"].judgement == "depends"
    assert found["faster than GPipe-Model"].judgement == "does not hold"


def coarsened(atoms_s: float, end: bool) -> dict[str, Finding]:
    results: list[Result] = []
    for cell in SearchOnBlocks().suite(False):
        atoms = cell.at["series"] == "atoms"
        if atoms and float(cell.at["layers"]) > 48 and not end:
            results.append(result(cell, None, status="timeout", reason="no plan within 60 s"))
        else:
            seconds = atoms_s if atoms else 1.0
            results.append(result(cell, 1.0, search_wall_s=seconds, counters={"atoms": 14387}))
    return {finding.claim.name: finding for finding in SearchOnBlocks().judge(results)}


def test_coarsening_both_ways() -> None:
    found = coarsened(50.0, end=False)
    assert [finding.judgement for finding in found.values()] == ["holds", "holds", "holds", "claim only"]
    found = coarsened(2.0, end=True)
    assert found["blocks reduce the search"].judgement == "does not hold"
    assert found["without blocks the search does not end"].judgement == "does not hold"


@pytest.mark.parametrize("reproduction", [BertThroughput(), ResNetThroughput(), SearchOnBlocks()])
def test_no_rows_judge_nothing(reproduction: Reproduction) -> None:
    assert {finding.judgement for finding in reproduction.judge([])} == {"claim only"}
    assert [finding.claim for finding in reproduction.judge([])] == list(reproduction.claims)
    reproduction.series([])


@pytest.mark.parametrize("reproduction", [BertThroughput(), ResNetThroughput(), SearchOnBlocks()])
def test_the_subset_is_short_and_the_chart_has_its_curves(reproduction: Reproduction) -> None:
    cells = reproduction.suite(False)
    assert sum(cell.expected_s for cell in cells) < 300
    assert len(reproduction.suite(True)) >= len(cells)
    figure = reproduction.series([result(cell, 1.0, search_wall_s=1.0) for cell in cells])
    assert all(panel.curves for panel in figure.panels)


def test_figure_4_pins_what_each_contender_recomputes() -> None:
    """Section IV-A: checkpointing by layer for Megatron-LM, none for data parallelism; the others choose."""
    cells = BertThroughput().suite(True)
    pinned = {cell.at["series"]: cell.recompute for cell in cells}
    assert {key: word for key, word in pinned.items() if word} == {
        "dp": "none",
        "megatron": "full",
        "megatron-kept": "none",
    }
    assert len(cells) == 18 * len(pinned)
