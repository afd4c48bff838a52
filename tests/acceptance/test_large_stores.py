"""Stores of many problems: every command that reads them works, in less than 1 GB for 100,000 rows."""

import os
import sys
from pathlib import Path

import pytest

from pipebench.bench.store import Store
from tests.acceptance.large_store import write_shards, write_store
from tests.cli.command_line import CommandLine

MOST_BYTES = 10**9
PROBLEMS, ENTRANTS, SHARDS = 2000, 25, 8


def test_a_store_of_more_problems_than_are_shown(pipebench: CommandLine, tmp_path: Path) -> None:
    write_store(tmp_path / "alone", range(23), 2)
    write_shards(tmp_path / "shards", 23, 2, 3)
    assert pipebench("merge", str(tmp_path / "shards"), "--out", str(tmp_path / "merged")).code == 0
    keys = [Store.open(tmp_path / name, writable=False).latest().keys() for name in ("alone", "merged")]
    assert keys[0] == keys[1]
    assert pipebench("diff", str(tmp_path / "alone"), str(tmp_path / "merged"), "--exit-code").code == 0
    shown = pipebench("show", str(tmp_path / "merged"))
    assert shown.out.count("no plan beats") == 20
    assert "the first 20 of 23 problems: --all" in shown.out
    whole = pipebench("show", str(tmp_path / "merged"), "--all")
    assert whole.out.count("no plan beats") == 23


def test_a_page_of_too_many_rows_shows_the_first_problems(
    pipebench: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipebench.report.html import rows_page

    write_store(tmp_path / "store", range(8), 3)
    monkeypatch.setattr(rows_page, "MOST_PAGE_ROWS", 40)
    monkeypatch.setattr(rows_page, "LARGE_PAGE_ROWS", 20)
    page = tmp_path / "page.html"
    assert pipebench("report", str(tmp_path / "store"), "-o", str(page)).code == 0
    text = page.read_text()
    assert "48 rows, 8 problems" in text
    assert "it shows the first 3 problems, 18 rows" in text
    assert text.count("<details") == 18
    assert "performance profiles over 8 problems" in text
    assert "Standings, sync: 8 problems, 3 entrants" in text


def measured(folder: Path, *typed: str) -> tuple[int, float, int]:
    """Exit code, CPU seconds and peak memory in bytes of a command in a process of its own."""
    process = os.fork()
    if process == 0:
        out = os.open(folder / "out.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.execv(sys.executable, [sys.executable, "-m", "pipebench", *typed])
    _, status, used = os.wait4(process, 0)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, peak


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_rows(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", PROBLEMS, ENTRANTS, SHARDS)
    merged = str(tmp_path / "merged")
    commands = [
        ("merge", str(tmp_path / "shards"), "--out", merged),
        ("show", merged),
        ("report", merged, "-o", str(tmp_path / "page.html")),
        ("diff", merged, merged, "--exit-code"),
    ]
    for typed in commands:
        code, cpu_s, peak_bytes = measured(tmp_path, *typed)
        print(f"{typed[0]}: {cpu_s:.1f} CPU s, {peak_bytes / 1e6:.0f} MB")
        said = (tmp_path / "out.txt").read_text()
        assert code == 0, said
        assert peak_bytes < MOST_BYTES
    rows = PROBLEMS * ENTRANTS * 2
    assert f"{rows} same, 0 better, 0 worse, 0 changed" in said
    assert len(Store.open(merged, writable=False).rows()) == rows
