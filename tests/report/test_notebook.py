"""Values of the API show themselves in notebooks."""

import pytest

from pipebench.api import compare, draw, plan
from pipebench.domain.row import Row
from pipebench.report.notebook import Comparison
from tests.report.html.page import Page
from tests.report.rows import row

SMALL = {"models": "mmt[branches=2,layers=2]", "cluster": "summit", "devices": 2, "mini_batch": 4}


def test_a_comparison_is_a_list_of_rows_and_a_table() -> None:
    rows = compare(["uniform", "data-parallel"], regime="sync", **SMALL)
    assert [type(each) for each in rows] == [Row, Row]
    page = Page(rows._repr_html_())
    assert next(text for tag, text in page.words if tag == "td") == "uniform"
    assert page.count("tr") == 3


@pytest.mark.parametrize("planner", ["uniform", "contiguous-exact"])
def test_a_plan_shows_its_timeline(planner: str) -> None:
    page = Page(plan(planner, **SMALL)._repr_html_())
    assert page.count("svg") == 1
    assert page.count("table") == 1


def test_a_drawing_is_a_picture() -> None:
    (drawing,) = draw("1f1b", stages=2, micro_batches=3)
    assert Page(drawing._repr_html_()).count("svg") == 1


def test_reasons_are_words() -> None:
    html = Comparison([row("<b>a</b>", status="crashed", reason="<i>boom</i>")])._repr_html_()
    assert Page(html).count("b") == Page(html).count("i") == 0
    assert "&lt;i&gt;boom" in html
