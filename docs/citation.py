"""CITATION.cff, from pyproject.toml, the version and the changelog: python docs/citation.py writes it.

--check: exit code 1 if it is not current.
"""

import json
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "CITATION.cff"


def citation(root: Path = ROOT) -> str:
    """The text of the file, of Citation File Format 1.2.0. What the project's settings leave empty has no line."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project, places = settings["project"], settings["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    version = _found(r'^__version__ = "(.+)"$', root / settings["tool"]["hatch"]["version"]["path"])
    released = _found(rf"^## \[{re.escape(version)}\] - (\d{{4}}-\d\d-\d\d)$", root / "CHANGELOG.md")
    fields = {
        "cff-version": "1.2.0",
        "message": "If you use pipebench, please cite it, and the papers of the planners that you ran: "
        "`pipebench info NAME --cite` names them.",
        "type": "software",
        "title": project["name"],
        "abstract": project["description"],
        "authors": [{"name": author["name"]} for author in project["authors"]],
        "version": version,
        "date-released": released,
        "license": project["license"],
        "keywords": project["keywords"],
        "repository-code": places["repository"],
        "url": places["documentation"],
    }
    return f"# Made by docs/citation.py: do not edit.\n{''.join(_lines(fields))}"


def _found(pattern: str, path: Path) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise SystemExit(f"{path}: no line is as {pattern}")
    return match[1]


def _lines(fields: dict[str, Any]) -> list[str]:
    """YAML of the fields that are not empty. A JSON string is a YAML string."""
    lines = []
    for name, value in fields.items():
        if isinstance(value, list):
            lines.append(f"{name}:\n{''.join(f'  - {_item(each)}' for each in value)}")
        elif value:
            lines.append(f"{name}: {json.dumps(value, ensure_ascii=False)}\n")
    return lines


def _item(value: str | dict[str, str]) -> str:
    if isinstance(value, str):
        return f"{json.dumps(value, ensure_ascii=False)}\n"
    return "    ".join(_lines(value))


def run(arguments: list[str]) -> int:
    text = citation()
    if "--check" in arguments:
        return int(not FILE.is_file() or FILE.read_text(encoding="utf-8") != text)
    FILE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
