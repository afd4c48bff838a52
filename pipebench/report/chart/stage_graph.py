"""The stages of a plan as a graph: columns by depth, edges with what one micro-batch sends."""

from collections.abc import Iterator, Sequence

from pipebench.costs.messages import stage_edges
from pipebench.costs.model import CostModel
from pipebench.documents.units import readable_bytes, readable_seconds
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Verdict
from pipebench.report.chart.colours import CARD, INK, STROKE
from pipebench.report.chart.elements import DASHES, LETTER, SIZE, document, text
from pipebench.report.chart.stage_layout import BOX_WIDTH, LEVEL, StageBox, stage_layout
from pipebench.report.text.plans import operators, span

MARGIN, HEAD = 16.0, 44.0
MOST_STAGES = 200
LONGEST = int(BOX_WIDTH / LETTER) - 1


def stage_graph_svg(problem: Problem, plan: Plan, verdict: Verdict, title: str) -> str:
    """The graph as an SVG file; dashed: edges of order alone. Of more than 200 stages the first are drawn."""
    shown = min(len(plan.stages), MOST_STAGES)
    edges = [edge for edge in stage_edges(problem.profile.graph, plan) if max(edge) < shown]
    layout = stage_layout(shown, edges)
    inside = [text(MARGIN, MARGIN + SIZE, title, bold=True)]
    if shown < len(plan.stages):
        inside.append(text(MARGIN, HEAD - 4, f"the first {shown} of {len(plan.stages)} stages"))
    model = CostModel(problem)
    sent = _bytes_sent(model, plan)
    for edge, route in layout.routes.items():
        inside += _edge([(MARGIN + x, HEAD + y) for x, y in route], sent.get(edge))
    for position, box in enumerate(layout.boxes):
        inside += _box(model, plan, position, verdict, box)
    width = max(layout.width + 2 * MARGIN, 2 * MARGIN + LETTER * 1.15 * len(title))
    return document(width, HEAD + layout.height + MARGIN, title, inside)


def _bytes_sent(model: CostModel, plan: Plan) -> dict[tuple[int, int], int]:
    """For each pair of stages what a micro-batch of the first sends."""
    sent: dict[tuple[int, int], int] = {}
    for message in model.messages(plan):
        edge = message.source, message.target
        amount = model.tensor_bytes(message.tensor, plan.stages[message.source].micro_batch)
        sent[edge] = sent.get(edge, 0) + amount
    return sent


def _box(model: CostModel, plan: Plan, position: int, verdict: Verdict, box: StageBox) -> Iterator[str]:
    x, y = MARGIN + box.left, HEAD + box.top
    stage = plan.stages[position]
    times = model.stage_times(stage, plan)
    peak = max((verdict.peak_bytes.get(device, 0) for device in stage.devices), default=0)
    lines = (
        f"stage {position} on gpu {span(stage.devices)}",
        operators(stage.operators),
        f"F {readable_seconds(times.forward / 1e9)}, B {readable_seconds(times.backward / 1e9)}",
        f"micro-batch {stage.micro_batch}{f', {readable_bytes(peak)}' if peak else ''}",
    )
    size = f'width="{BOX_WIDTH:.0f}" height="{box.height:.0f}" rx="6"'
    yield f'<rect x="{x:.1f}" y="{y:.1f}" {size} fill="{CARD}" stroke="{INK}"/>'
    for number, words in enumerate(lines):
        shown = words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"
        yield text(x + 8, y + 17 + 17 * number, shown, bold=number == 0)


def _edge(route: Sequence[tuple[float, float]], amount: int | None) -> Iterator[str]:
    """amount: bytes, written above the last level part; None: an edge of order alone."""
    (x, y), *rest = route
    strokes = [f"M{x:.1f} {y:.1f}"]
    for (bent, level), (end, _) in zip(rest[::2], rest[1::2], strict=True):
        half = (x + bent) / 2
        strokes.append(f"C{half:.1f} {y:.1f} {half:.1f} {level:.1f} {bent:.1f} {level:.1f}L{end:.1f} {level:.1f}")
        x, y = end, level
    dash = "" if amount is not None else f' stroke-dasharray="{DASHES}"'
    yield f'<path d="{"".join(strokes)}" fill="none" stroke="{STROKE}" stroke-width="1.2"{dash} class="edge"/>'
    head = f"M{x - 7:.1f} {y - 4:.1f}L{x:.1f} {y:.1f}L{x - 7:.1f} {y + 4:.1f}"
    yield f'<path d="{head}" fill="{STROKE}"/>'
    if amount is not None:
        yield text(x - LEVEL + 4, y - 4, readable_bytes(amount))
