"""The page on the architecture names files that exist, every room of the host, and the layers in their order."""

import re
import tomllib

from tests.docs.pages import DOCS

PAGE = (DOCS / "explanation" / "architecture.md").read_text()
ROOT = DOCS.parent


def named_paths() -> list[str]:
    """Paths in code marks that name a file or a folder of the repository."""
    names = re.findall(r"`([\w./*-]+(?:/|\.py|\.md|\.toml))`", PAGE)
    return sorted({name for name in names if "/" in name})


def test_what_it_names_exists() -> None:
    paths = named_paths()
    assert len(paths) > 30
    inside = (
        "bench/standings/",
        "blocks/",
        "chains/",
        "check/",
        "comparisons/",
        "frameworks/",
        "hooks/",
        "installed/",
        "machine/",
        "measurements/",
        "ordering/",
        "profiles/",
        "programs/",
        "reproduction/",
        "text/",
    )
    missing = [
        path
        for path in paths
        if not any(ROOT.glob(path.rstrip("/")))
        and not (path in inside and any(ROOT.glob(f"pipebench/**/{path.rstrip('/')}")))
    ]
    assert missing == []


def test_every_room_of_the_host_is_there() -> None:
    rooms = {path.name for path in (ROOT / "pipebench").iterdir() if path.is_dir() and path.name[0] not in "_."}
    assert rooms - {"cli"} <= {name.split("/")[1] for name in named_paths() if name.startswith("pipebench/")}


def test_the_rooms_stand_in_the_order_of_the_layers() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    floor = {room.strip(): height for height, layer in enumerate(reversed(layers)) for room in layer.split("|")}
    rows = re.findall(r"^\| `pipebench/(\w+)(?:/|\.py)`", PAGE, re.MULTILINE)
    heights = [floor[f"pipebench.{room}"] for room in rows]
    assert len(rows) > 10
    assert heights == sorted(heights)
