"""Stage graphs, measured: edges run beside boxes, labels beside edges."""

import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest

from pipebench.domain.verdict import Verdict
from pipebench.report.chart.stage_graph import stage_graph_svg
from pipebench.report.chart.stage_layout import stage_layout
from tests.builders import cluster, dag_problem, stages_plan
from tests.report.chart.drawn import Box, all_of, boxes_of

Edges = Sequence[tuple[int, int]]
CHAIN: Edges = [(0, 1), (1, 2), (2, 3)]
SKIPS: Edges = [*CHAIN, (0, 2), (0, 3), (1, 3)]
BRANCHES: Edges = [(0, 1), (1, 6), (2, 3), (3, 6), (4, 5), (5, 6), (6, 7), (4, 7), (0, 7)]
STAR: Edges = [(n, 9) for n in range(9)]


def random_edges(seed: int) -> Edges:
    rng = random.Random(seed)
    return [(a, b) for b in range(1, 12) for a in range(b) if rng.random() < 0.3]


GRAPHS = [CHAIN, SKIPS, BRANCHES, STAR, [], *map(random_edges, range(8))]


def drawn(edges: Edges, order: Edges = ()) -> ET.Element:
    count = max((max(edge) for edge in [*edges, *order]), default=0) + 1
    tensors = [(source, (target,), 123_456) for source, target in edges]
    problem = dag_problem([10] * count, [20] * count, tensors, cluster(count))
    plan = stages_plan([[n] for n in range(count)], order_edges=order)
    return ET.fromstring(stage_graph_svg(problem, plan, Verdict(status="valid"), "stages"))


def stage_boxes(root: ET.Element) -> list[Box]:
    names = [text for text in boxes_of(root) if text.words.startswith("stage ") and " on gpu" in text.words]
    sizes = [[float(each.attrib[name]) for name in ("x", "y", "width", "height")] for each in all_of(root, "rect")]
    return [Box(name.words, x, y, x + w, y + h) for name, (x, y, w, h) in zip(names, sizes, strict=True)]


def edge_paths(root: ET.Element) -> list[str]:
    return [each.attrib["d"] for each in all_of(root, "path") if each.attrib.get("class") == "edge"]


def samples(path: str) -> Iterator[tuple[float, float]]:
    """Places along a path of M, C and L, 50 on each of its parts."""
    x, y = 0.0, 0.0
    for command, numbers in re.findall(r"([MCL])([^MCL]*)", path):
        values = list(map(float, numbers.split()))
        points = [(x, y), *zip(values[::2], values[1::2], strict=True)]
        if command != "M":
            assert len(points) in (2, 4)
            yield from (bezier(points, step / 50) for step in range(51))
        x, y = points[-1]


def bezier(points: Sequence[tuple[float, float]], at: float) -> tuple[float, float]:
    """de Casteljau's way."""
    while len(points) > 1:
        points = [((1 - at) * a + at * c, (1 - at) * b + at * d) for (a, b), (c, d) in pairwise(points)]
    return points[0]


def inside(box: Box, place: tuple[float, float]) -> bool:
    return box.left + 0.2 < place[0] < box.right - 0.2 and box.top + 0.2 < place[1] < box.bottom - 0.2


@pytest.mark.parametrize("edges", GRAPHS)
def test_no_edge_runs_behind_a_box(edges: Edges) -> None:
    root = drawn(edges)
    boxes, paths = stage_boxes(root), edge_paths(root)
    assert len(paths) == len(edges)
    for path in paths:
        for place in samples(path):
            assert not [box for box in boxes if inside(box, place)], path


@pytest.mark.parametrize("edges", GRAPHS)
def test_every_edge_leads_from_its_source_to_its_target(edges: Edges) -> None:
    root = drawn(edges)
    boxes = {box.words.split()[1]: box for box in stage_boxes(root)}
    ends = set()
    for path in edge_paths(root):
        (x1, y1), *_, (x2, y2) = samples(path)
        (source,) = [n for n, b in boxes.items() if abs(b.right - x1) < 0.2 and b.top < y1 < b.bottom]
        (target,) = [n for n, b in boxes.items() if abs(b.left - x2) < 0.2 and b.top < y2 < b.bottom]
        ends.add((int(source), int(target)))
    assert ends == set(edges)


@pytest.mark.parametrize("edges", GRAPHS)
def test_no_label_lies_on_an_edge_a_box_or_a_label(edges: Edges) -> None:
    root = drawn(edges)
    labels = [box for box in boxes_of(root) if box.words.endswith(("kB", "MB"))]
    assert len(labels) == len(edges)
    for number, label in enumerate(labels):
        assert not [other for other in [*labels[number + 1 :], *stage_boxes(root)] if label.overlaps(other)]
        for path in edge_paths(root):
            assert not [place for place in samples(path) if inside(label, place)], (label, path)


@pytest.mark.parametrize("edges", GRAPHS)
def test_boxes_stand_apart_and_inside(edges: Edges) -> None:
    root = drawn(edges)
    boxes = stage_boxes(root)
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])
        assert 0 < box.left < box.right < float(root.attrib["width"])
        assert 0 < box.top < box.bottom < float(root.attrib["height"])


def test_edges_of_order_are_dashed_and_have_no_bytes() -> None:
    root = drawn(CHAIN, order=[(0, 3)])
    edges = [each for each in all_of(root, "path") if each.attrib.get("class") == "edge"]
    assert sum("stroke-dasharray" in each.attrib for each in edges) == 1
    assert len([box for box in boxes_of(root) if box.words.endswith("MB")]) == 3


def test_a_circle_of_stages_is_laid_out_without_the_edges_that_lead_back() -> None:
    layout = stage_layout(2, [(0, 1), (1, 0)])
    assert len(layout.boxes) == 2
    assert len(layout.routes) <= 1
