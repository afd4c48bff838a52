"""The gallery runs from top to bottom, and what ends a cell shows itself."""

import ast
import json
from typing import Any

from tests.docs.pages import DOCS
from tests.report.html.page import Page

GALLERY = json.loads((DOCS / "gallery.ipynb").read_text())


def code_cells() -> dict[str, str]:
    """The text of each cell of code, by its id."""
    return {each["id"]: "".join(each["source"]) for each in GALLERY["cells"] if each["cell_type"] == "code"}


def value_of(cell: str, names: dict[str, Any]) -> Any:
    """Runs a cell as a notebook does. Its value is that of the last line, where this is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


def test_every_cell_runs_and_shows_what_it_says() -> None:
    names: dict[str, Any] = {}
    values = {name: value_of(cell, names) for name, cell in code_cells().items()}
    shown = {name: each._repr_html_() for name, each in values.items() if hasattr(each, "_repr_html_")}
    assert {"compare", "best", "draw", "plan", "period"} <= set(shown)
    assert {name for name, each in values.items() if each is not None} - set(shown) <= {"frame"}
    assert len(names["rows"]) >= 2
    assert {row.status for row in names["rows"]} == {"ok"}
    planners = {row.planner for row in names["rows"]}
    assert planners <= {text for tag, text in Page(shown["compare"]).words if tag == "th"}
    for name in ("draw", "plan", "period"):
        assert Page(shown[name]).count("svg") == 1, name
    assert "memory (" in shown["plan"]
    assert "period" in shown["period"]


def test_it_is_a_small_notebook_without_outputs() -> None:
    """Of format 4.5, in which every cell has an id."""
    assert (GALLERY["nbformat"], GALLERY["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in GALLERY["cells"]}) == len(GALLERY["cells"])
    for cell in GALLERY["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
    assert (DOCS / "gallery.ipynb").stat().st_size < 10_000
