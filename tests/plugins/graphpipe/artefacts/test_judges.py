"""The judges on rows made by hand: each claim can hold, fail and depend."""

from typing import Any

import pytest

from pipebench.domain.artefact import Finding
from pipebench.hooks.reproduction import Reproduction
from pipebench_graphpipe.artefacts.a3 import SequentialTransformer
from pipebench_graphpipe.artefacts.fig6 import ThroughputByDevices
from pipebench_graphpipe.artefacts.fig7left import GainByBranches
from pipebench_graphpipe.artefacts.fig7right import ThroughputByMicroBatch
from pipebench_graphpipe.artefacts.fig8 import CaseStudy
from pipebench_graphpipe.artefacts.fig9 import StagesAndMicroBatches
from pipebench_graphpipe.artefacts.table1 import SearchTimes
from tests.plugins.graphpipe.artefacts.rules import Rule, judged, results

FIGURES: list[Reproduction] = [
    ThroughputByDevices(),
    SearchTimes(),
    GainByBranches(),
    ThroughputByMicroBatch(),
    CaseStudy(),
    StagesAndMicroBatches(),
    SequentialTransformer(),
]
NAMES = ["fig6", "table1", "fig7left", "fig7right", "fig8", "fig9", "a3"]
GRAPHPIPES = ("best", "paper", "plain")


def fields(rate: float, depth: int = 4, **more: Any) -> dict[str, Any]:
    return {"throughput": rate, "depth": depth, "stages": 8, "micro_batch": (4,), "replicas": (1,), **more}


def as_the_paper(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
    """GraphPipe gains with devices, branches and micro-batches, by a pipeline of half the depth."""
    devices, tail = int(at["devices"]), str(at["network"]).rpartition("-")[2]
    branches = int(tail) if tail.isdigit() else 4
    size, chain = int(at.get("micro_batch", 0)), at["network"] == "transformer"
    if key == "piper" and not chain:
        return None
    # On one device 1 % remains; at 32 devices, or 16 branches, or the largest micro-batch, it is twice as fast.
    gain = 1 + (0 if chain else 0.6 * devices / 32 + 0.4 * branches / 16 + 0.01 * size**0.5)
    fast = key in GRAPHPIPES
    search = {"search_cpu_s": {"paper": 0.1, "plain": 0.1, "best": 0.5, "piper": 40.0}.get(key, 1.5)}
    work = {"counters": {"transitions": 100 if fast else 1000}}
    depth = 1 + devices // (2 if fast else 1)
    return fields(100.0 * devices * (gain if fast else 1), depth, **search, **work)


@pytest.mark.parametrize(
    ("figure", "names"),
    [
        (
            ThroughputByDevices(),
            ["ahead in all but one", "the gap widens", "Piper has no plan", "faster where shallower"],
        ),
        (
            ThroughputByDevices(),
            ["up to 1.6", "more devices, more stages in a row", "variant best is never behind"],
        ),
        (SearchTimes(), ["9 times faster", "within a minute", "Piper has no plan", "fewer partitions"]),
        (SearchTimes(), ["hardly anything is lost"]),
        (GainByBranches(), ["the gain grows with the branches", "shallower at every count", "Piper has no plan"]),
        (ThroughputByMicroBatch(), ["always ahead", "the gap is the depth", "larger micro-batches, larger gap"]),
        (SequentialTransformer(), ["nothing is lost"]),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else value[0],
)
def test_what_the_paper_found_holds(figure: Reproduction, names: list[str]) -> None:
    found = judged(figure, as_the_paper)
    assert {name: found[name].judgement for name in names} == dict.fromkeys(names, "holds")
    assert all(found[name].measured for name in names)


def reverse(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
    """The baselines win, by less and less, with the shallower pipelines; Piper has plans."""
    fast, size = key in GRAPHPIPES, int(at.get("micro_batch", 1))
    tail = str(at["network"]).rpartition("-")[2]
    growth = int(at["devices"]) + size + (int(tail) if tail.isdigit() else 0)
    search = {"search_cpu_s": {"piper": 0.01}.get(key, 100.0 if fast else 1.0)}
    work = {"counters": {"transitions": 1000 if fast else 100}}
    slow = (400.0 if key == "best" else 450.0) / growth
    return fields(slow if fast else 100.0, 9 if fast else 2, **search, **work)


def rising(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
    """GraphPipe is faster and as deep."""
    return fields(200.0 if key in GRAPHPIPES else 100.0, 9) | {"stages": 6}


@pytest.mark.parametrize("figure", FIGURES, ids=NAMES)
def test_no_claim_holds_by_itself(figure: Reproduction) -> None:
    found = judged(figure, reverse)
    shallower = judged(figure, rising)
    for name, finding in found.items():
        failing = finding if finding.judgement != "holds" else shallower[name]
        assert failing.judgement in ("does not hold", "claim only"), name


@pytest.mark.parametrize("figure", FIGURES, ids=NAMES)
def test_without_rows_every_claim_is_a_claim_only(figure: Reproduction) -> None:
    assert {finding.judgement for finding in figure.judge([])} == {"claim only"}
    assert [panel.curves for panel in figure.series([]).panels if panel.curves] == []


def one_form(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
    return fields({"best": 150.0, "paper": 150.0, "k": 100.0}.get(key, 200.0))


def test_a_claim_that_holds_against_one_form_only_depends_and_says_on_which() -> None:
    found = judged(ThroughputByDevices(), one_form)["ahead in all but one"]
    assert found.judgement == "depends"
    holds, _, not_ = found.reason.partition("not for")
    assert "GraphPipe paper / PipeDream k" in holds
    assert "GraphPipe paper / PipeDream bs" in not_
    assert found.value == 0.75


def test_all_but_one_is_one() -> None:
    def behind(losses: int) -> Rule:
        at_devices = (4.0, 8.0)[:losses]

        def rule(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
            lost = at["network"] == "mmt" and at["devices"] in at_devices
            return fields(99.0 if lost and key in GRAPHPIPES else 120.0 if key in GRAPHPIPES else 100.0)

        return rule

    assert judged(ThroughputByDevices(), behind(1))["ahead in all but one"].judgement == "holds"
    assert judged(ThroughputByDevices(), behind(2))["ahead in all but one"].judgement == "does not hold"


def ablation(rates: dict[int, dict[str, float]]) -> dict[str, Finding]:
    def rule(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
        found = rates.get(int(at.get("micro_batch", 0)), {}).get(key if key != "best" else "paper")
        return None if found is None else fields(found)

    return judged(StagesAndMicroBatches(), rule)


def test_the_ablation_compares_at_the_baseline_s_best_micro_batch() -> None:
    # PipeDream is best at 64, GraphPipe gains 20 % there and has 30 % at 128.
    found = ablation({64: {"k": 100.0, "paper": 120.0}, 128: {"k": 90.0, "paper": 130.0}})
    assert {f.judgement for name, f in found.items() if name != "the bars"} == {"holds"}
    assert "1.20 (both at b=64)" in found["parallel stages"].measured[0]
    assert "1.30" in found["parallel stages and larger micro-batches"].measured[0]
    assert "1.20 by stages, 1.08 by size" in found["both matter"].measured[0]
    assert "128 for 64" in found["the micro-batch is larger"].measured[0]
    same = ablation({64: {"k": 100.0, "paper": 130.0}})
    assert same["parallel stages and larger micro-batches"].judgement == "holds"
    assert same["both matter"].judgement == "does not hold"
    assert same["the micro-batch is larger"].judgement == "does not hold"


def test_the_ablation_says_where_a_planner_s_own_choice_is_another() -> None:
    def rule(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
        size = int(at.get("micro_batch", 0))
        if key != "k" or size not in (0, 64):
            return None
        return fields(100.0 if size else {"mmt": 100.4, "dlrm": 90.0}.get(str(at["network"]), 100.0))

    notes = StagesAndMicroBatches().series(results(StagesAndMicroBatches(), rule)).notes
    assert len(notes) == 1
    assert notes[0].endswith("differ: dlrm, PipeDream k: 100 given (b=64), 90 by choice (b=4)")


def case_study(free: dict[str, tuple[float, int, int]], fixed: dict[int, dict[str, float]]) -> dict[str, Finding]:
    """free: rate, micro-batch and depth by contender; fixed: rates by micro-batch."""

    def rule(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
        if size := int(at.get("micro_batch", 0)):
            rate = fixed.get(size, {}).get(key)
            return None if rate is None else fields(rate, micro_batch=(size,))
        if key not in free:
            return None
        rate, size, depth = free[key]
        more = 0.01 / at["memory_gb"] if key in GRAPHPIPES else 0
        return fields(rate * (1 + more), depth, micro_batch=(size, size))

    return judged(CaseStudy(), rule)


def test_the_case_study_of_the_paper() -> None:
    free = {"k": (100.0, 2, 8), "paper": (121.0, 4, 4), "best": (121.0, 4, 4)}
    found = case_study(free, {2: {"k": 100.0, "paper": 110.0, "best": 110.0}})
    assert {name: f.judgement for name, f in found.items()} == dict.fromkeys(found, "holds")
    assert found["two gains alike"].measured[0].endswith("1.100 by the schedule, 1.101 by the size")


def test_a_case_study_whose_gain_is_the_schedule_alone() -> None:
    free = {"k": (100.0, 4, 8), "paper": (121.0, 4, 5), "best": (121.0, 4, 5)}
    found = case_study(free, {4: {"k": 100.0, "paper": 121.0, "best": 121.0}})
    against = ("half as deep", "twice the micro-batch", "two gains alike")
    assert {found[name].judgement for name in against} == {"does not hold"}
    assert found["20 % in all"].judgement == "holds"


def test_rates_as_printed_are_recognised() -> None:
    printed = {4: 113.6, 8: 189.5, 16: 287.52, 32: 608.82}
    found = judged(SequentialTransformer(), lambda _, at: fields(printed[int(at["devices"])]))
    assert {name: f.judgement for name, f in found.items()} == dict.fromkeys(found, "holds")


def test_trouble_is_told_and_is_no_missing_plan() -> None:
    def rule(key: str, at: dict[str, Any]) -> dict[str, Any] | None:
        broken = {"status": "timeout", "reason": "120 s"}
        return broken if key == "data" else fields(100.0)

    figure = ThroughputByDevices().series(results(ThroughputByDevices(), rule))
    assert figure.notes == ("16 x data-parallel: timeout: 120 s",)
    assert all(curve.infeasible == () for panel in figure.panels for curve in panel.curves)


def test_the_table_of_figure_6_has_the_ratios_of_every_cell() -> None:
    (table,) = ThroughputByDevices().series(results(ThroughputByDevices(), as_the_paper)).tables
    assert table.columns[:2] == ("model", "devices")
    assert table.columns[-4:] == ("GP/PD", "paper/PD", "GP/PD+G", "GP/DP")
    assert [row[:2] for row in table.rows] == [
        (network, str(devices))
        for network in ("mmt", "dlrm", "candle-uno", "transformer")
        for devices in (4, 8, 16, 32)
    ]
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert table.rows[0][-4:] == ("1.18",) * 4


def test_printed_search_times_stand_beside_ours() -> None:
    *_, printed = SearchTimes().series(results(SearchTimes(), as_the_paper)).tables
    first = dict(zip(printed.columns[1:], printed.rows[0][1:], strict=False))
    assert first["PD: paper's"] == "21.4"
    assert first["ours k"] == "15.00"
