"""Links between files of the repository lead to files, and every page has its place on the site."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS

ROOT = DOCS.parent
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "profiles" / "README.md"])
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)")


def broken_links(text: str, folder: Path) -> list[str]:
    """Paths of the text's links that name no file, from the folder of its page."""
    return [path for path in _LINK.findall(_CODE.sub("", text)) if not (folder / path).exists()]


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in PAGES])
def test_a_link_leads_to_a_file(page: str) -> None:
    assert broken_links((ROOT / page).read_text(), (ROOT / page).parent) == []


def test_a_link_to_nothing_is_found() -> None:
    text = "[a](README.md), [b](none.md#c), `[d](code.md)`, [e](https://example.org/f.md)"
    assert broken_links(text, ROOT) == ["none.md"]


def test_every_page_has_its_place_on_the_site() -> None:
    placed = re.findall(r"^   ([\w/-]+)$", (DOCS / "index.rst").read_text(), re.MULTILINE)
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")} - {"README"}
    assert pages - set(placed) == set()
    assert len(placed) == len(set(placed))
