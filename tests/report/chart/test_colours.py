"""Pictures on light and dark pages: every colour follows, and what is written can be read."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pipebench.api import draw, plan
from pipebench.domain.artefact import Curve, Figure, Panel
from pipebench.domain.verdict import Verdict
from pipebench.report.chart import svg
from pipebench.report.chart.colours import CURVES, DARK, INK, MERGED, PALE, PAPER, TASKS, TRANSFERS, WIDE_TRANSFERS
from pipebench.report.chart.memory_bars import DeviceMemory, memory_svg
from pipebench.report.chart.pareto import QualityPoint, pareto_svg
from pipebench.report.chart.plots import profile_svg, quality_svg
from pipebench.report.chart.stage_graph import stage_graph_svg
from pipebench.report.gantt.contest import Contest, PlanTimeline, contests_svg
from pipebench.report.gantt.gantt import gantt
from tests.builders import chain_problem, cluster, stages_plan
from tests.report.gantt.traces import TWO
from tests.report.rows import row

SMALL: dict[str, Any] = {"models": "mmt[branches=2,layers=2]", "cluster": "summit", "devices": 2, "mini_batch": 4}
SUITS_BOTH = set(CURVES) - {"#000000"} | set(TRANSFERS.values())


def luminance(colour: str) -> float:
    """Of WCAG 2.1, relative luminance."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def stage_graph() -> str:
    problem = chain_problem([10] * 3, [20] * 3, cluster(3), activations=[0, 5, 5, 0])
    return stage_graph_svg(problem, stages_plan([[0], [1], [2]]), Verdict(status="valid"), "stages")


def periodic() -> str:
    found = plan("contiguous-exact", **SMALL)._repr_html_()
    return found[found.index("<svg") :]


def timeline() -> str:
    found = plan("uniform", regime="sync", **SMALL)._repr_html_()
    return found[found.index("<svg") :]


def chart() -> str:
    curves = [
        Curve(label=str(n), colour=n, points=((1.0, 2.0), (2.0, 3.0)), infeasible=(1.0,), kind=kind)
        for n in range(8)
        for kind in ("estimate", "schedule")
    ]
    return svg(Figure(title="all", panels=(Panel(title="t", x_label="x", y_label="y", curves=tuple(curves)),)))


def profile() -> str:
    return profile_svg(chain_problem([10] * 3, [20] * 3, cluster(3)).profile)


def quality() -> str:
    return quality_svg([row("a", simulated_s=1.0), row("b", simulated_s=2.0)], "quality")


def drawing() -> str:
    return draw("zb-v", weight=1)[0]._repr_html_()


def pareto() -> str:
    return pareto_svg([QualityPoint(str(n), n, 0.5 + 0.05 * n, 0.01 * (n % 5 + 1)) for n in range(8)], "pareto")


def memory() -> str:
    return memory_svg([DeviceMemory(str(n), n, {0: 10**9 * n}) for n in range(1, 8)], 2, 10**10, "memory")


def contest() -> str:
    plans = [PlanTimeline("two", gantt(TWO, links=False))]
    return contests_svg([Contest("sync", plans, 30)], "contest")


MAKERS = [stage_graph, periodic, timeline, chart, profile, quality, drawing, pareto, memory, contest]


def colours(picture: str) -> Iterator[tuple[str, str]]:
    """Attributes that paint, and what they paint with."""
    for element in ET.fromstring(picture).iter():
        for name in ("fill", "stroke"):
            if element.attrib.get(name, "none") != "none":
                yield name, element.attrib[name]


@pytest.mark.parametrize("make", MAKERS)
def test_every_colour_follows_the_scheme_of_the_page(make: Callable[[], str]) -> None:
    picture = make()
    (dark,) = re.findall(r"@media \(prefers-color-scheme: dark\)\{(.*)\}</style>", picture)
    painted = set(colours(picture))
    assert len(painted) > 2
    for name, colour in painted:
        swapped = f'.pipebench [{name}="{colour}"]{{{name}:{DARK.get(colour)}}}' in dark
        assert swapped != (colour in SUITS_BOTH), (name, colour)


@pytest.mark.parametrize("make", MAKERS)
def test_the_paper_is_no_element_and_follows_too(make: Callable[[], str]) -> None:
    picture = make()
    assert ".pipebench{background:#ffffff}" in picture
    assert f".pipebench{{background:{DARK[PAPER]}}}" in picture
    root = ET.fromstring(picture)
    assert root.attrib["class"] == "pipebench"
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert (box.get("width"), box.get("height")) != (root.get("width"), root.get("height"))


@pytest.mark.parametrize("scheme", [{}, DARK], ids=["light", "dark"])
def test_what_is_drawn_can_be_seen(scheme: dict[str, str]) -> None:
    """Words have 4.5 to 1 (WCAG AA) on the paper and on bars; curves of a dark page 3 to 1."""

    def shown(colour: str) -> str:
        return scheme.get(colour, colour)

    for ground in (PAPER, MERGED, *TASKS.values(), *WIDE_TRANSFERS.values()):
        assert contrast(shown(INK), shown(ground)) >= 4.5, ground
    for curve in (*CURVES, *TRANSFERS.values()):
        assert contrast(shown(curve), shown(PAPER)) >= (3 if scheme else 2), curve
    assert contrast(shown(PALE), shown(PAPER)) < 2
