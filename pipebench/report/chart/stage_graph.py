"""The stages of a plan as a graph: columns by depth, edges with what one micro-batch sends."""

from collections.abc import Iterator

from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.documents.units import readable_bytes, readable_seconds
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Verdict
from pipebench.report.chart.colours import CARD, INK, STROKE
from pipebench.report.chart.elements import LETTER, SIZE, document, text
from pipebench.report.text.plans import operators, span

BOX_WIDTH, BOX_HEIGHT, ACROSS, DOWN, MARGIN, HEAD = 224.0, 78.0, 110.0, 22.0, 16.0, 44.0
MOST_STAGES = 200
LONGEST = int(BOX_WIDTH / LETTER) - 1


def stage_graph_svg(problem: Problem, plan: Plan, verdict: Verdict, title: str) -> str:
    """The graph as an SVG file; dashed: edges of order alone. Of more than 200 stages the first are drawn."""
    places = _places(problem, plan)
    width = 2 * MARGIN + max((x for x, _ in places), default=0.0) + BOX_WIDTH
    height = HEAD + max((y for _, y in places), default=0.0) + BOX_HEIGHT + MARGIN
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True)]
    if len(places) < len(plan.stages):
        inside.append(text(MARGIN, HEAD - 4, f"the first {len(places)} of {len(plan.stages)} stages"))
    inside += _edges(problem, plan, places)
    model = CostModel(problem)
    for position, (x, y) in enumerate(places):
        inside += _box(model, plan, position, verdict, MARGIN + x, HEAD + y)
    return document(max(width, 2 * MARGIN + LETTER * 1.15 * len(title)), height, title, inside)


def _places(problem: Problem, plan: Plan) -> list[tuple[float, float]]:
    """Left and upper corner of each stage: as far right as its longest way from a source."""
    depth = [0] * len(plan.stages)
    edges = stage_edges(problem.profile.graph, plan)
    for _ in plan.stages:
        moved = False
        for source, target in edges:
            if depth[target] <= depth[source]:
                depth[target], moved = depth[source] + 1, True
        if not moved:
            break
    filled: dict[int, int] = {}
    places = []
    for column in depth[:MOST_STAGES]:
        row = filled.get(column, 0)
        filled[column] = row + 1
        places.append((column * (BOX_WIDTH + ACROSS), row * (BOX_HEIGHT + DOWN)))
    return places


def _box(model: CostModel, plan: Plan, position: int, verdict: Verdict, x: float, y: float) -> Iterator[str]:
    stage = plan.stages[position]
    times = model.stage_times(stage, plan)
    peak = max((verdict.peak_bytes.get(device, 0) for device in stage.devices), default=0)
    lines = (
        f"stage {position} on gpu {span(stage.devices)}",
        operators(stage.operators),
        f"F {readable_seconds(times.forward / 1e9)}, B {readable_seconds(times.backward / 1e9)}",
        f"micro-batch {stage.micro_batch}{f', {readable_bytes(peak)}' if peak else ''}",
    )
    size = f'width="{BOX_WIDTH:.0f}" height="{BOX_HEIGHT:.0f}" rx="6"'
    yield f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{CARD}" stroke="{INK}"/>'
    for number, words in enumerate(lines):
        shown = words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
        yield text(x + 8, y + 17 + 17 * number, shown, bold=number == 0)


def _edges(problem: Problem, plan: Plan, places: list[tuple[float, float]]) -> Iterator[str]:
    model = CostModel(problem)
    sent: dict[tuple[int, int], int] = {}
    for message in model.messages(plan):
        edge = message.source, message.target
        amount = model.tensor_bytes(message.tensor, plan.stages[message.source].micro_batch)
        sent[edge] = sent.get(edge, 0) + amount
    for source, target in stage_edges(problem.profile.graph, plan):
        if max(source, target) >= len(places):
            continue
        (x1, y1), (x2, y2) = places[source], places[target]
        start, end = MARGIN + x1 + BOX_WIDTH, MARGIN + x2
        high, low = HEAD + y1 + BOX_HEIGHT / 2, HEAD + y2 + BOX_HEIGHT / 2
        dash = "" if (source, target) in sent else ' stroke-dasharray="5 4"'
        bend = f"M{start:.1f} {high:.1f}C{start + 40:.1f} {high:.1f} {end - 40:.1f} {low:.1f} {end:.1f} {low:.1f}"
        yield f'<path d="{bend}" fill="none" stroke="{STROKE}" stroke-width="1.2"{dash}/>'
        head = f"M{end - 7:.1f} {low - 4:.1f}L{end:.1f} {low:.1f}L{end - 7:.1f} {low + 4:.1f}"
        yield f'<path d="{head}" fill="{STROKE}"/>'
        if (source, target) in sent:
            words = readable_bytes(sent[source, target])
            yield text(start + 6, high - 6, words)
