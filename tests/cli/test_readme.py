"""The README shows what the command prints, and has the line that CI tests by."""

import re
from pathlib import Path

import pytest

from tests.cli.command_line import CommandLine

README = Path(__file__).parents[2] / "README.md"


def blocks() -> list[str]:
    return re.findall(r"^```(?:\w*)\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)


def without_search_times(text: str) -> list[list[str]]:
    """Words line by line; the one column that differs from run to run is hidden."""
    hidden = re.sub(r"\d[\d.]*( \| \d[\d.]*)? (ms|us|s)\b", "TIME", text)
    return [line.split() for line in hidden.splitlines()]


def test_the_sample_is_a_block_that_the_main_job_prints(
    pipebench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sample,) = [block for block in blocks() if " no plan beats " in block]
    monkeypatch.setenv("COLUMNS", "100")
    done = pipebench("compare", "--planners", "madpipe,graphpipe")
    assert done.code == 0, done.err + done.out
    shown, printed = without_search_times(sample), without_search_times(done.out)
    first = printed.index(shown[0])
    assert printed[first : first + len(shown)] == shown
    assert printed[first + len(shown)] == []  # the whole block
    assert max(map(len, done.out.splitlines())) <= 100
    assert "\x1b" not in done.out


def test_ci_finds_the_test_command() -> None:
    """As .ci/run does: a line of its own."""
    commands = re.findall(r"^pip install -c constraints.txt .*pytest.*$", README.read_text(), re.MULTILINE)
    assert len(commands) == 1


def test_it_is_short_and_its_links_lead_somewhere() -> None:
    text = README.read_text()
    assert len(text.splitlines()) <= 90
    targets = re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text)
    assert len(targets) >= 10
    assert [target for target in targets if not (README.parent / target).is_file()] == []
