"""What the figures run: the paper's models, devices and mini-batches; a subset of minutes."""

import pytest

from pipebench.domain.errors import PipebenchError
from pipebench.hooks.manager import Host
from pipebench.hooks.reproduction import Reproduction
from pipebench_graphpipe.artefacts.a3 import SequentialTransformer
from pipebench_graphpipe.artefacts.fig6 import ThroughputByDevices
from pipebench_graphpipe.artefacts.fig7left import GainByBranches
from pipebench_graphpipe.artefacts.fig7right import ThroughputByMicroBatch
from pipebench_graphpipe.artefacts.fig8 import CaseStudy
from pipebench_graphpipe.artefacts.fig9 import StagesAndMicroBatches
from pipebench_graphpipe.artefacts.table1 import SearchTimes

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


@pytest.mark.parametrize("figure", FIGURES, ids=NAMES)
def test_the_subset_takes_minutes_and_lies_in_what_is_whole(figure: Reproduction) -> None:
    subset, whole = figure.suite(full=False), figure.suite(full=True)
    assert sum(cell.expected_s for cell in subset) < 200
    assert {(str(cell.at), cell.planner) for cell in subset} <= {(str(cell.at), cell.planner) for cell in whole}
    assert len(whole) > len(subset)
    assert len({str(cell.at) for cell in whole}) == len(whole)


@pytest.mark.parametrize("figure", FIGURES, ids=NAMES)
def test_every_cell_is_on_the_paper_s_platform(figure: Reproduction) -> None:
    for cell in figure.suite(full=True):
        assert (cell.cluster, cell.regime, cell.optimizer, cell.tp) == ("summit", "sync", "adam", None)
        assert "max_tensor_parallel=1" in cell.profiler


def test_mini_batches_are_those_of_the_appendix() -> None:
    found = {
        (cell.at["network"], cell.devices): cell.mini_batch for cell in ThroughputByDevices().suite(full=False)
    }
    assert [found["mmt", devices] for devices in (4, 8, 16, 32)] == [64, 128, 256, 512]
    assert [found["dlrm", devices] for devices in (4, 8, 16, 32)] == [256, 512, 1024, 2048]
    assert [found["candle-uno", devices] for devices in (4, 8, 16, 32)] == [4096, 8192, 16384, 32768]
    assert {cell.mini_batch for cell in ThroughputByMicroBatch().suite(full=True)} == {128}


def test_counts_of_branches_are_those_of_either_section() -> None:
    appendix, section = (
        {cell.model for cell in figure.suite(full=False)} for figure in (ThroughputByDevices(), SearchTimes())
    )
    assert appendix == {"mmt[branches=4]", "dlrm[dense=7,sparse=7]", "candle-uno[branches=7]", "transformer"}
    assert section == {"mmt[branches=2]", "dlrm[dense=4,sparse=4]", "candle-uno[branches=8]"}
    assert {cell.model for cell in SearchTimes().suite(full=True)} == section | (appendix - {"transformer"})


def test_search_times_are_of_warm_searches() -> None:
    assert {cell.repeat for cell in SearchTimes().suite(full=False) if "piper" not in cell.planner} == {3, 0}
    assert {cell.planner for cell in SearchTimes().suite(full=False) if not cell.repeat} == {
        "pipedream[execution=graph,replicas=split]"
    }
    planners = {cell.planner for cell in SearchTimes().suite(full=False)}
    assert {
        "pipedream[replicas=split]",
        "pipedream[form=bs,replicas=split]",
        "graphpipe[variant=paper,memo=false]",
        "piper[memory=piper]",
    } <= planners


def test_the_case_study_draws_both_schedules() -> None:
    drawn = [(cell.planner, cell.timeline) for cell in CaseStudy().suite(full=False) if cell.timeline]
    assert drawn == [("graphpipe[variant=paper]", "GraphPipe paper"), ("pipedream[replicas=split]", "PipeDream k")]


def test_files_come_beside_the_models_or_are_refused() -> None:
    for figure in (ThroughputByDevices(), SearchTimes(), StagesAndMicroBatches()):
        plain, more = figure.suite(full=False), figure.suite(full=False, profiles=["mine.json"])
        added = [cell for cell in more if cell not in plain]
        assert {(cell.profile, cell.model, cell.at["network"]) for cell in added} == {
            ("mine.json", None, "mine.json")
        }
    for refusing in (GainByBranches(), ThroughputByMicroBatch(), CaseStudy(), SequentialTransformer()):
        with pytest.raises(PipebenchError, match="no profile file"):
            refusing.suite(full=False, profiles=["mine.json"])


def test_the_host_finds_them() -> None:
    host = Host()
    offers = {name: each for name, each in host.slot("artefacts").items() if name.startswith("graphpipe/")}
    assert sorted(offers) == sorted(f"graphpipe/{name}" for name in NAMES)
    for name, figure in zip(NAMES, FIGURES, strict=True):
        assert host.load(offers[f"graphpipe/{name}"].component) is type(figure)
        assert all(claim.where and claim.statement for claim in figure.claims)
