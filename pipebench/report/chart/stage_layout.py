"""Where stages stand and how edges run: columns by depth, and a lane through each column that an edge passes.

Between two columns an edge first bends, then runs level to its lane or to its own place at the box, where its
label stands above it. So no edge runs behind a box, and no label lies on an edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

BOX_WIDTH, BOX_HEIGHT, DOWN = 224.0, 78.0, 22.0
BEND, LEVEL = 56.0, 84.0
"""Between two columns: where edges bend, and where they run level."""
LANE, ENTRY = 14.0, 17.0
"""Height of a lane, and between the places at which edges enter a box."""

Edge = tuple[int, int]
Point = tuple[float, float]
_Node = tuple[Literal["stage", "lane"], int]
"""A stage, or the lane of the edges that leave one."""


@dataclass(frozen=True, slots=True)
class StageBox:
    """The box of a stage: its left upper corner and its height."""

    left: float
    top: float
    height: float

    @property
    def middle(self) -> float:
        """Where edges leave it."""
        return self.top + self.height / 2


@dataclass(frozen=True, slots=True)
class StageLayout:
    """A box for each stage. routes: of each edge the ends of its level parts, two and two, from box to box."""

    boxes: tuple[StageBox, ...]
    routes: dict[Edge, tuple[Point, ...]]
    width: float
    height: float


def stage_layout(stages: int, edges: Sequence[Edge]) -> StageLayout:
    """The layout of stages 0 … stages - 1. Edges that lead to a stage of no greater depth are left out."""
    depth = _depths(stages, edges)
    drawn = [(source, target) for source, target in edges if depth[source] < depth[target]]
    columns = _columns(depth, drawn)
    heights = [_height(sum(target == stage for _, target in drawn)) for stage in range(stages)]
    middles: list[dict[_Node, float]] = []
    tallest = max((_tall(column, heights) for column in columns), default=0.0)
    for number, column in enumerate(columns):
        if number:
            column.sort(key=lambda node: _wish(node, number, depth, drawn, middles))
        top = (tallest - _tall(column, heights)) / 2
        middles.append({})
        for node in column:
            high = _high(node, heights)
            middles[-1][node] = top + high / 2
            top += high + DOWN
    boxes = tuple(
        StageBox(_left(depth[stage]), middles[depth[stage]]["stage", stage] - heights[stage] / 2, heights[stage])
        for stage in range(stages)
    )
    width = max(0.0, _left(len(columns)) - BEND - LEVEL)
    return StageLayout(boxes, _routes(depth, drawn, boxes, middles), width, tallest)


def _depths(stages: int, edges: Sequence[Edge]) -> list[int]:
    """As far right as the longest way from a source."""
    depth = [0] * stages
    for _ in range(stages):
        moved = False
        for source, target in edges:
            if depth[target] <= depth[source]:
                depth[target], moved = depth[source] + 1, True
        if not moved:
            break
    return depth


def _columns(depth: Sequence[int], edges: Sequence[Edge]) -> list[list[_Node]]:
    """Stages, and a lane for each stage whose edges pass a column."""
    columns: list[list[_Node]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for stage, column in enumerate(depth):
        columns[column].append(("stage", stage))
    for source in sorted({source for source, _ in edges}):
        last = max(depth[target] for start, target in edges if start == source)
        for column in range(depth[source] + 1, last):
            columns[column].append(("lane", source))
    return columns


def _height(entries: int) -> float:
    return max(BOX_HEIGHT, ENTRY * (entries + 1))


def _high(node: _Node, heights: Sequence[float]) -> float:
    kind, stage = node
    return LANE if kind == "lane" else heights[stage]


def _tall(column: Sequence[_Node], heights: Sequence[float]) -> float:
    return sum(_high(node, heights) + DOWN for node in column) - DOWN


def _left(column: int) -> float:
    return column * (BOX_WIDTH + BEND + LEVEL)


def _node_at(source: int, column: int, depth: Sequence[int]) -> _Node:
    """What an edge from this stage comes from in a column."""
    return ("stage" if depth[source] == column else "lane", source)


def _wish(
    node: _Node, column: int, depth: Sequence[int], edges: Sequence[Edge], middles: Sequence[dict[_Node, float]]
) -> float:
    """The mean height of what leads to a node."""
    kind, stage = node
    sources = [stage] if kind == "lane" else [source for source, target in edges if target == stage]
    before = [middles[column - 1][_node_at(source, column - 1, depth)] for source in sources]
    return sum(before) / max(1, len(before))


def _routes(
    depth: Sequence[int],
    edges: Sequence[Edge],
    boxes: Sequence[StageBox],
    middles: Sequence[dict[_Node, float]],
) -> dict[Edge, tuple[Point, ...]]:
    routes: dict[Edge, tuple[Point, ...]] = {}
    for target in sorted({target for _, target in edges}):
        column, box = depth[target], boxes[target]
        sources = [source for source, end in edges if end == target]
        sources.sort(key=lambda source: middles[column - 1][_node_at(source, column - 1, depth)])
        for number, source in enumerate(sources, 1):
            points: list[Point] = [(boxes[source].left + BOX_WIDTH, boxes[source].middle)]
            for passed in range(depth[source] + 1, column):
                y = middles[passed]["lane", source]
                points += [(_left(passed) - LEVEL, y), (_left(passed) + BOX_WIDTH, y)]
            entry = box.top + box.height * number / (len(sources) + 1)
            routes[source, target] = (*points, (box.left - LEVEL, entry), (box.left, entry))
    return routes
