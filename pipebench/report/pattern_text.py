"""One period of a schedule as text: a line a device or link, time from left to right."""

from pipebench.domain.units import readable_seconds
from pipebench.report.pattern import Block, Pattern

FILL = {"F": "=", "B": "-", "f": ">", "b": "<"}
IDLE = "."
SMALLEST_WIDTH = 20
LEGEND = (
    "F0[1]= forward of stage 0, B0[1]- backward, f0> its output sent, b0< the gradient of its output sent back; "
    "[h]: in period k the micro-batch k - h; . idle"
)


def pattern_lines(pattern: Pattern, columns: int = 80) -> list[str]:
    """The lines, the share of the period that each device or link is busy at their end.

    A block that reaches into the next period goes on at the left, without its label. One narrower than its label
    shows as much of it as is unmistakable (F0, F); one narrower than a column may vanish.
    """
    labels = [row.label for row in pattern.rows]
    margin = max(map(len, labels), default=0) + 1
    width = max(SMALLEST_WIDTH, columns - margin - len(" 100 %"))
    lines = [f"period {readable_seconds(pattern.period_ns / 1e9)}"]
    for row, busy in zip(pattern.rows, pattern.busy, strict=True):
        cells = [IDLE] * width
        for block in row.blocks:
            _put(cells, block, pattern.period_ns)
        lines.append(f"{row.label:<{margin}}{''.join(cells)} {100 * busy:>3.0f} %")
    return lines


def _put(cells: list[str], block: Block, period_ns: int) -> None:
    scale = len(cells) / period_ns
    for position, (start, end) in enumerate(block.parts(period_ns)):
        first, last = round(start * scale), round(end * scale)
        if last > first:
            label = _fitting(block, last - first) if position == 0 else ""
            cells[first:last] = label.ljust(last - first, FILL[block.kind])


def _fitting(block: Block, width: int) -> str:
    return next(
        (text for text in (block.label, f"{block.kind}{block.stage}", block.kind) if len(text) <= width), ""
    )
