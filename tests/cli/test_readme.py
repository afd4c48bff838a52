"""The README shows what the command prints, and has the line that CI tests by."""

import re
from pathlib import Path

import pytest

from pipebench.report.chart.terminal import LETTER, LINE
from tests.cli.command_line import CommandLine
from tests.report.chart.drawn import lines_of

README = Path(__file__).parents[2] / "README.md"


PICTURE = README.parent / "docs" / "pictures" / "comparison.svg"
CLAIMS = README.parent / "docs" / "claims.md"
COLUMNS = 120
SEARCH = r"\b\d[\d.]*(?: \| \d[\d.]*)? (?:ms|us|s)\b"
PROBLEM = "--profile mmt --cluster summit --memory 16GB --devices 8 --mini-batch 128 --optimizer adam"
"""The second of the main job, alone."""


def without_search_times(lines: list[str]) -> list[list[str]]:
    """Words line by line; the one column that differs from run to run is hidden."""
    return [re.sub(SEARCH, "TIME", line).split() for line in lines]


@pytest.mark.nightly
def test_the_picture_is_what_its_commands_draw(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the block in it is one that the main job prints, its notes numbered among others there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    job = ("compare", "--planners", "madpipe,graphpipe")
    alone = pipebench(*job, *PROBLEM.split(), "--out", "results")
    assert alone.code == 0, alone.err + alone.out
    assert pipebench("report", "results", "-o", "block.svg", "--columns", str(COLUMNS)).code == 0
    drawn = lines_of((tmp_path / "block.svg").read_text(), LETTER, LINE)
    shown = lines_of(PICTURE.read_text(), LETTER, LINE)
    assert without_search_times(shown) == without_search_times(drawn)

    done = pipebench(*job)
    assert done.code == 0, done.err + done.out
    printed = done.out.splitlines()
    first = printed.index(shown[0])
    block = printed[first : printed.index("", first)]
    assert [words_before_the_search(line) for line in shown[: len(block)]] == [
        words_before_the_search(line) for line in block
    ]
    assert max(map(len, printed)) <= COLUMNS
    assert "\x1b" not in done.out


def words_before_the_search(line: str) -> list[str]:
    return re.split(SEARCH, line)[0].split()


def test_ci_finds_the_test_command() -> None:
    """As .ci/run does: a line of its own."""
    commands = re.findall(r"^pip install -c constraints.txt .*pytest.*$", README.read_text(), re.MULTILINE)
    assert len(commands) == 1


def test_its_counts_of_claims_are_those_of_their_page() -> None:
    counts = re.findall(r"(\d+) (?:claims|holds|depends|does not|claim only)", CLAIMS.read_text().splitlines()[2])
    said = re.search(
        r"of (\d+) claims, (\d+) hold, (\d+) depend .*, (\d+) do not hold, (\d+) cannot",
        " ".join(README.read_text().split()),
    )
    assert said is not None
    assert list(said.groups()) == counts


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 65
    targets = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text)
    assert len(targets) >= 10
    assert [target for target in targets if not (README.parent / target).is_file()] == []
