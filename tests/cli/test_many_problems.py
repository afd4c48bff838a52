"""Results of more problems than a terminal or a page shows."""

from pathlib import Path

from msgspec.structs import replace

from pipebench.documents.document import Rows
from pipebench.formats.documents import write_document
from pipebench.report.html.rows_page import LARGE_PAGE_ROWS, MOST_PAGE_ROWS, _of_first_problems
from tests.bench.store.made import stored
from tests.cli.command_line import CommandLine


def rows_file(path: Path, problems: int) -> str:
    made = (stored(n, workload_id=f"{n:064}", problem_id=f"{n:064}", model=f"model-{n}") for n in range(problems))
    write_document(path, "rows", Rows(rows=tuple(each.row for each in made)))
    return str(path)


def test_the_first_twenty_problems_are_shown(pipebench: CommandLine, tmp_path: Path) -> None:
    few = pipebench("show", rows_file(tmp_path / "few.json", 20)).out
    assert "model-19 " in few
    assert "--all" not in few
    many = rows_file(tmp_path / "many.json", 21)
    shown, whole = pipebench("show", many).out, pipebench("show", many, "--all").out
    assert "model-19 " in shown
    assert "model-20 " not in shown
    assert "the first 20 of 21 problems: --all prints all" in shown
    assert "model-20 " in whole


def test_a_page_has_whole_problems_and_at_least_one() -> None:
    row = stored(0).row
    large, small = [replace(row, workload_id="a")] * MOST_PAGE_ROWS, [replace(row, workload_id="b")] * 2
    assert _of_first_problems(large) == large
    assert _of_first_problems([*large, *small]) == large
    assert _of_first_problems([*small, *large]) == small
    hundreds = [replace(row, workload_id=str(n // 300)) for n in range(MOST_PAGE_ROWS + 1)]
    assert len(_of_first_problems(hundreds)) == LARGE_PAGE_ROWS // 300 * 300
