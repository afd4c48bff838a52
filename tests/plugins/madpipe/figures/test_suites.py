"""What the figures run: the paper's grid, a subset of a few minutes, the user's files; and the paper's words."""

import re

import pytest

from pipebench.hooks.manager import Host
from pipebench.hooks.reproduction import Reproduction
from pipebench_madpipe.figures.fig6 import PeriodsByMemory
from pipebench_madpipe.figures.fig7 import PeriodsOverMadPipe
from pipebench_madpipe.figures.fig8 import SpeedupsByDevices
from tests.shared_data import FOLDER

FIGURES: list[Reproduction] = [PeriodsByMemory(), PeriodsOverMadPipe(), SpeedupsByDevices()]
NAMES = ["fig6", "fig7", "fig8"]


@pytest.mark.parametrize("figure", FIGURES, ids=NAMES)
def test_the_subset_takes_under_five_minutes(figure: Reproduction) -> None:
    """As estimated, at 0.8 s a trial; the slow variant is only where its table of states is small."""
    subset = figure.suite(full=False)
    assert sum(cell.expected_s for cell in subset) < 300
    assert len(subset) < len(figure.suite(full=True)) / 3


def test_the_whole_grid_is_the_paper_s() -> None:
    cells = PeriodsOverMadPipe().suite(full=True)
    assert {cell.at["network"] for cell in cells} == {"resnet50", "resnet101", "inception_v3", "densenet121"}
    assert {cell.devices for cell in cells} == set(range(2, 9))
    assert {cell.memory for cell in cells} == {f"{memory}GB" for memory in range(3, 17)}
    assert {cell.bandwidth for cell in cells} == {"12GB/s", "24GB/s"}
    assert {(cell.micro_batch, cell.mini_batch, cell.dp) for cell in cells} == {(8, 8, 1)}
    assert len(cells) == 4 * 7 * 14 * 2 * 6
    assert {str(cell.at["network"]) for cell in PeriodsByMemory().suite(full=True)} == {"resnet50"}


@pytest.mark.parametrize("figure", FIGURES, ids=NAMES)
def test_every_reading_of_pipedream_and_both_madpipes_run(figure: Reproduction) -> None:
    for full in (False, True):
        planners = {cell.planner for cell in figure.suite(full)}
        assert {f"pipedream[memory={reading}]" for reading in ("p", "decreasing", "released")} <= planners
        assert {"madpipe", "madpipe[variant=paper]", "contiguous-exact"} <= planners


@pytest.mark.parametrize("figure", FIGURES, ids=NAMES)
def test_files_come_beside_what_ships_and_are_read_as_the_paper_s_chain(figure: Reproduction) -> None:
    plain, more = figure.suite(full=False), figure.suite(full=False, profiles=["some/resnet50.txt", "mine.json"])
    assert [cell for cell in more if cell in plain] == list(plain)
    added = {(cell.at["network"], cell.profile) for cell in more if cell not in plain}
    assert added == {("resnet50.txt", "some/resnet50.txt[saved=boundary]"), ("mine.json", "mine.json")}
    assert {cell.input_bytes for cell in more} == {4.0 * 3 * 1000**2}


def test_figure_8_has_each_network_on_one_device() -> None:
    alone = [cell for cell in SpeedupsByDevices().suite(full=False, profiles=["mine.json"]) if cell.devices == 1]
    assert [cell.at["network"] for cell in alone] == [
        "resnet50",
        "resnet101",
        "inception_v3",
        "densenet121",
        "mine.json",
    ]
    assert {cell.memory for cell in alone} == {"1000GB"}


def test_the_host_finds_them() -> None:
    host = Host()
    found = {name: each for name, each in host.slot("artefacts").items() if name.startswith("madpipe/")}
    assert list(found) == [f"madpipe/{name}" for name in NAMES]
    for figure, registered in zip(FIGURES, found.values(), strict=True):
        assert host.load(registered.component) is type(figure)
        assert figure.claims


def test_quotes_are_the_paper_s_words() -> None:
    paper = FOLDER.parent / "papers" / "madpipe.txt"
    if not paper.exists():
        pytest.skip("needs the text of the paper")
    words = plain(paper.read_text())
    for figure in FIGURES:
        for claim in figure.claims:
            assert plain(claim.quote) in words, claim.name


def plain(text: str) -> str:
    """Without formulas' dollars and line breaks; case apart."""
    return re.sub(r"\s+([.,])", r"\1", " ".join(text.replace("$", " ").split())).lower()
