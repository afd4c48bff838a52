"""The judges on rows made by hand: each claim can hold and fail; the suites are the paper's."""

from collections.abc import Mapping
from typing import Any

import pytest

from pipebench.domain.artefact import Cell, Finding, Result
from pipebench_pase.figures.cells import DATA_PARALLEL
from pipebench_pase.figures.fig6 import SpeedupsOverDataParallel
from pipebench_pase.figures.table1 import SearchTimesByOrdering
from pipebench_pase.figures.table2 import StrategiesOn32
from tests.artefacts.results import row_result


def result(model: str, devices: int, series: str, **fields: Any) -> Result:
    at: dict[str, str | float] = {"model": model, "devices": float(devices), "series": series}
    return row_result(Cell(at=at, planner=series, profile="made", devices=devices), **fields)


def times(ours: float, walk: float, breadth: float, costs: Mapping[str, float] | None = None) -> list[Result]:
    costs = {"pase": 1.0, "mcmc": 1.0, "breadth-first": 1.0} | dict(costs or {})
    seconds = {"pase": ours, "mcmc": walk, "breadth-first": breadth}
    return [result("alexnet", 4, key, search_cpu_s=seconds[key], claimed_native=costs[key]) for key in seconds]


def judged(artefact: Any, results: list[Result]) -> dict[str, Finding]:
    findings = artefact.judge(results)
    assert [finding.claim for finding in findings] == list(artefact.claims)
    return {finding.claim.name: finding for finding in findings}


def test_every_claim_needs_cells() -> None:
    for artefact in (SearchTimesByOrdering(), SpeedupsOverDataParallel(), StrategiesOn32()):
        assert {finding.judgement for finding in artefact.judge([])} == {"claim only"}
        artefact.series([])


def test_path_graphs_hold_at_similar_times_and_equal_costs() -> None:
    name = "path graphs need no order"
    assert judged(SearchTimesByOrdering(), times(0.1, 1.0, 0.15))[name].judgement == "holds"
    assert judged(SearchTimesByOrdering(), times(0.1, 1.0, 0.3))[name].judgement == "does not hold"
    assert (
        judged(SearchTimesByOrdering(), times(0.1, 1.0, 0.1, {"breadth-first": 2.0}))[name].judgement
        == "does not hold"
    )


def test_the_walk_has_to_be_slower_and_no_better() -> None:
    name = "faster than FlexFlow"
    assert judged(SearchTimesByOrdering(), times(0.1, 1.0, 0.1))[name].value == pytest.approx(10)
    assert judged(SearchTimesByOrdering(), times(1.0, 0.1, 0.1))[name].judgement == "does not hold"
    assert judged(SearchTimesByOrdering(), times(0.1, 1.0, 0.1, {"mcmc": 0.5}))[name].judgement == "does not hold"


def test_the_papers_own_times_are_the_measure() -> None:
    name = "within a few minutes"
    assert judged(SearchTimesByOrdering(), times(0.2, 1.0, 0.1))[name].judgement == "holds"
    assert judged(SearchTimesByOrdering(), times(0.3, 1.0, 0.1))[name].judgement == "does not hold"


def test_breadth_first_has_to_be_refused() -> None:
    name = "breadth-first blows up"
    refused = [result("transformer", 8, "breadth-first", status="unsupported", reason="37 operators")]
    assert judged(SearchTimesByOrdering(), refused)[name].judgement == "holds"
    ran = [result("inception_v3", 8, "breadth-first", search_cpu_s=1.0)]
    assert judged(SearchTimesByOrdering(), ran)[name].judgement == "does not hold"
    assert judged(SearchTimesByOrdering(), refused + ran)[name].judgement == "depends"


def test_the_simulation_decides_on_speedups() -> None:
    def made(ours: float, base: float, expert: float) -> list[Result]:
        times_s = {"pase": ours, "data-parallel": base, "expert": expert, "mcmc": 9.0}
        return [result("rnnlm", 8, key, simulated_s=s, claimed_s=1.0) for key, s in times_s.items()]

    both = judged(SpeedupsOverDataParallel(), made(1.0, 2.0, 1.5))
    assert [finding.judgement for finding in both.values()] == ["holds", "holds"]
    slower = judged(SpeedupsOverDataParallel(), made(1.0, 0.8, 0.5))
    assert slower["never below data parallelism"].judgement == "does not hold"
    assert slower["never below data parallelism"].value == pytest.approx(0.8)
    assert "its own cost the least is 1.00" in slower["never below data parallelism"].reason
    assert slower["better than experts and FlexFlow"].judgement == "depends"
    assert SpeedupsOverDataParallel().series(made(1.0, 2.0, 1.5)).panels[2].curves[0].points == ((8.0, 2.0 / 1.5),)


def test_splits_are_read_from_the_notices() -> None:
    notices = (
        "operators a, b without dims: cut by samples only",
        *(f"conv{n}: batch/32" for n in range(1, 5)),
        "conv5: batch/16 in_channels/2",
        "fc6: in_features/8 out_features/4",
        "fc7: in_features/4 out_features/8",
        "fc8: in_features/4 out_features/8",
    )
    found = judged(StrategiesOn32(), [result("alexnet", 32, "pase", notices=notices, claimed_native=1.0)])
    assert found["AlexNet's convolutions"].judgement == "holds"
    assert found["AlexNet's fully connected layers"].judgement == "depends"
    assert found["AlexNet's fully connected layers"].value == pytest.approx(2 / 3)
    assert found["RNNLM's vocabulary"].judgement == "claim only"
    notes = StrategiesOn32().series([result("alexnet", 32, "pase", notices=notices)]).notes
    assert "alexnet: batch/32: conv1 … conv4 (4)" in notes


def test_rnnlm_and_transformer_are_judged_by_their_dims() -> None:
    rnnlm = ("embedding: entries/32", "projection: out_features/32", "lstm: batch/16 layers/2")
    found = judged(StrategiesOn32(), [result("rnnlm", 32, "pase", notices=rnnlm, claimed_native=1.0)])
    assert (found["RNNLM's vocabulary"].judgement, found["RNNLM's layers"].judgement) == ("holds", "holds")
    ends = ("encoder.embedding: entries/8", "decoder.embedding: entries/8", "loss: batch/4 classes/8")
    found = judged(StrategiesOn32(), [result("transformer", 32, "pase", notices=ends, claimed_native=1.0)])
    assert found["the Transformer's ends"].value == pytest.approx(2 / 4)


def test_modules_of_inception() -> None:
    early, late = "Mixed_6e.branch1x1.conv", "Mixed_7c.branch1x1.conv"
    found = judged(
        StrategiesOn32(),
        [
            result(
                "inception_v3",
                32,
                "pase",
                notices=(f"{early}: batch/32", f"{late}: batch/8 in_channels/4"),
                claimed_native=1.0,
            )
        ],
    )
    assert found["Inception's last modules"].judgement == "holds"


def test_suites_are_the_papers_grid() -> None:
    table1, fig6, table2 = (
        artefact.suite(full=True)
        for artefact in (SearchTimesByOrdering(), SpeedupsOverDataParallel(), StrategiesOn32())
    )
    assert len(table1) == 4 * 5 * 3
    assert len(fig6) == 4 * 5 * 4
    assert {cell.planner for cell in fig6} == {
        DATA_PARALLEL,
        "expert",
        "mcmc[memory=ignored]",
        "pase[memory=ignored]",
    }
    assert [cell.devices for cell in table2] == [32] * 4
    assert {cell.repeat for cell in table1} == {1}
    assert len(SearchTimesByOrdering().suite(full=False)) == 4 * 2 * 3
