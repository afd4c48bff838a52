"""Pages and the code blocks in them."""

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"# ([\w./-]+\.(?:py|toml))\n")


@dataclass(frozen=True)
class Block:
    """One fenced block. file: the path in its first line, where it is a file."""

    language: str
    text: str

    @property
    def file(self) -> str | None:
        named = _NAMED.match(self.text)
        return named[1] if named else None


def written_pages() -> list[Path]:
    """All pages but those that docs/generate.py makes, and but the developer's, whose commands run these tests."""
    pages = set(DOCS.rglob("*.md")) - {DOCS / "CONTRIBUTING.md"}
    return sorted(page for page in pages if "made by docs/generate.py" not in page.read_text())


def blocks(page: Path) -> list[Block]:
    return [Block(language, text) for language, text in _BLOCK.findall(page.read_text())]
