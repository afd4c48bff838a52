"""The table of what is written by hand names files that there are."""

import re

import pytest

from tests.docs.pages import DOCS

ROOT = DOCS.parent
TABLE = (DOCS / "explanation" / "by-hand.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:pipebench|plugins)(?:/[\w.]+)*)`", TABLE))))
def test_a_file_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_networkx_is_imported_where_the_table_says_and_nowhere_else() -> None:
    importing = {
        path.relative_to(ROOT).as_posix()
        for folder in ("pipebench", "plugins")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*(import|from) networkx", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    library = TABLE.partition("## What is written by hand")[0]
    named = {
        path
        for line in library.splitlines()
        if "networkx" in line
        for path in re.findall(r"`(pipebench/.+?)`", line)
    }
    assert importing == named | {"pipebench/domain/graph.py"}  # to_networkx
