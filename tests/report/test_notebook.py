"""Values of the API show themselves in notebooks."""

import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import pipebench.api
from pipebench.api import compare, draw, plan
from pipebench.domain.errors import PipebenchError
from pipebench.domain.row import Row
from pipebench.report.drawing import Drawing, Drawings
from pipebench.report.notebook import Comparison
from tests.report.html.page import Page
from tests.report.rows import row

SMALL: dict[str, Any] = {"models": "mmt[branches=2,layers=2]", "cluster": "summit", "devices": 2, "mini_batch": 4}


def test_a_comparison_is_a_list_of_rows_and_a_table() -> None:
    rows = compare(["uniform", "data-parallel"], regime="sync", **SMALL)
    assert [type(each) for each in rows] == [Row, Row]
    page = Page(rows._repr_html_())
    assert [text for tag, text in page.words if tag == "th"][-3:] == ["uniform", "data-parallel", "best: uniform"]
    assert "2 stages" in [text for tag, text in page.words if tag == "td"]
    assert page.count("tr") == 4


def test_both_regimes_of_a_problem_are_one_line() -> None:
    page = Page(compare("uniform", **SMALL)._repr_html_())
    assert page.count("table") == 1
    assert page.count("tr") == 2
    headings = [text for tag, text in page.words if tag == "th"]
    assert [text for text in headings if text.startswith(("sync", "async"))] == [
        "sync samples/s",
        "async samples/s",
    ]


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


def test_drawings_are_a_list_and_one_picture() -> None:
    made = draw("gpipe,1f1b", stages=2, micro_batches=3)
    assert isinstance(made, list)
    assert [type(each) for each in made] == [Drawing, Drawing]
    assert [each.scheduler for each in made] == ["gpipe", "1f1b"]
    words = "".join(ET.fromstring(made._repr_svg_()).itertext())
    assert "gpipe: time" in words
    assert "1f1b: time" in words
    assert Page(made._repr_html_()).count("svg") == 1
    assert str(made).splitlines()[0] == "gpipe"
    assert ET.fromstring(Drawings()._repr_svg_()).tag.endswith("svg")


def test_names_come_by_commas_or_as_a_list_and_brackets_hold_together() -> None:
    for given in ("gpipe,kfkb[k=2]", ["gpipe", "kfkb[k=2]"], ("gpipe,kfkb[k=2]",), iter(["gpipe", "kfkb[k=2]"])):
        assert [each.scheduler for each in draw(given)] == ["gpipe", "kfkb[k=2]"]  # type: ignore[arg-type]


def test_texts_that_parse_are_numbers() -> None:
    (text,), (number,) = draw("gpipe", stages="2", forward="1.5"), draw("gpipe", stages=2, forward=1.5)  # type: ignore[arg-type]
    assert text == number
    rows = compare("uniform", regime="sync", schedulers="gpipe", **(SMALL | {"devices": "2"}))
    assert [(each.devices, each.status) for each in rows] == [(2, "ok")]


WRONG: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (compare, {"devices": "many"}, "devices is 'many'"),
    (compare, {"devices": 2.5}, "devices is 2.5"),
    (compare, {"memory": 16}, "memory is 16"),
    (compare, {"mini_batch": [4]}, "mini_batch is"),
    (compare, {"models": 5}, "models is 5"),
    (compare, {"repeat": "x"}, "repeat is 'x'"),
    (compare, {"schedulers": 5}, "schedulers is 5"),
    (compare, {"executors": [5]}, "executors is"),
    (compare, {"store": 5}, "store is 5"),
    (compare, {"jobs": "x"}, "jobs is 'x'"),
    (compare, {"timeout_s": "soon"}, "timeout_s is 'soon': Expected `float | None`"),
    (compare, {"regime": "sink"}, "did you mean 'sync'"),
    (compare, {"link_mode": "ful"}, "did you mean 'full'"),
    (compare, {"planners": 5}, "planners is 5"),
    (compare, {"device": 4}, "unknown arguments: device"),
    (plan, {"planner": 5}, "planner is 5"),
    (plan, {"seed": "x"}, "seed is 'x'"),
    (plan, {"devices": {}}, "devices is {}"),
    (plan, {"regime": 4}, "unknown regime '4'"),
    (draw, {"schedulers": 5}, "schedulers is 5"),
    (draw, {"stages": "x"}, "stages is 'x'"),
    (draw, {"forward": None}, "forward is None"),
    (draw, {"schedulers": ""}, "an empty name"),
]


@pytest.mark.parametrize(("verb", "wrong", "said"), WRONG)
def test_wrong_types_are_errors_of_pipebench(verb: Callable[..., Any], wrong: dict[str, Any], said: str) -> None:
    usual: dict[Callable[..., Any], dict[str, Any]] = {
        compare: {"planners": "uniform", **SMALL},
        plan: {"planner": "uniform", **SMALL},
        draw: {"schedulers": "gpipe"},
    }
    with pytest.raises(PipebenchError) as caught:
        verb(**(usual[verb] | wrong))
    assert said in str(caught.value)


def test_what_the_api_names_is_there() -> None:
    assert {"compare", "plan", "draw", "Comparison", "Drawings", "PipebenchError"} <= set(pipebench.api.__all__)
    assert all(hasattr(pipebench.api, name) for name in pipebench.api.__all__)


def test_a_frame_has_a_line_for_each_row_and_a_column_for_each_field(monkeypatch: pytest.MonkeyPatch) -> None:
    def frame(lines: list[dict[str, Any]], columns: tuple[str, ...]) -> Any:
        return SimpleNamespace(lines=lines, columns=columns)

    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=frame))
    made = Comparison([row("a", gap=0.25), row("b", micro_batch=(4, 8))]).to_frame()
    assert made.columns == Row.__struct_fields__
    assert [each["planner"] for each in made.lines] == ["a", "b"]
    assert made.lines[0]["gap"] == 0.25
    assert made.lines[1]["micro_batch"] == (4, 8)
    assert all(set(line) == set(made.columns) for line in made.lines)


def test_a_frame_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    made = Comparison([row("a"), row("b")]).to_frame()
    assert isinstance(made, pandas.DataFrame)
    assert made.shape == (2, len(Row.__struct_fields__))
    assert Comparison().to_frame().shape == (0, len(Row.__struct_fields__))


def test_without_pandas_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(PipebenchError, match="pandas"):
        Comparison([row("a")]).to_frame()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jobs", 0),
        ("rounds", 0),
        ("repeat", -1),
        ("timeout_s", 0.0),
        ("timeout_s", float("nan")),
        ("memory_bytes", -1),
        ("coarsen", -1),
        ("seed", -1),
    ],
)
def test_a_figure_out_of_range_is_refused(name: str, value: float) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(PipebenchError, match=f"{name} is .* it must be from"):
        compare("data-parallel", models="mlp", **given)
    if name in ("timeout_s", "seed", "coarsen"):
        with pytest.raises(PipebenchError, match=name):
            plan("data-parallel", models="mlp", **given)
