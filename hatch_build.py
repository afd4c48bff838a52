"""The package's URLs, and its README with links that lead somewhere on a package index.

Both follow from `repository` and `documentation` in pyproject.toml, `[tool.hatch.metadata.hooks.custom]`. An empty
setting leaves out what would need it.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+:|#)(?P<path>[^)\s]+)\)")


class PackageMetadata(MetadataHookInterface):
    """Sets `urls` and `readme` of the package."""

    def update(self, metadata: dict[str, Any]) -> None:
        repository, documentation = (self.config[name].rstrip("/") for name in ("repository", "documentation"))
        metadata["urls"] = urls(repository, documentation)
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": with_absolute_links(readme, repository)}


def urls(repository: str, documentation: str) -> dict[str, str]:
    """The project's URLs by label. Both arguments have no slash at the end; either may be empty."""
    found = {"Documentation": documentation} if documentation else {}
    if repository:
        found["Source"] = repository
        found["Issues"] = f"{repository}/issues"
        found["Changelog"] = f"{repository}/blob/HEAD/CHANGELOG.md"
    return found


def with_absolute_links(readme: str, repository: str) -> str:
    """The text with links to files of the repository made absolute.

    Without a repository a link becomes its text, and a picture goes: a package index has neither file.
    """

    def absolute(link: re.Match[str]) -> str:
        if not repository:
            return "" if link["image"] else link["text"]
        view = "raw" if link["image"] else "blob"
        return f"{link['image']}[{link['text']}]({repository}/{view}/HEAD/{link['path']})"

    return _RELATIVE_LINK.sub(absolute, readme)
