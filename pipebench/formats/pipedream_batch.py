"""How many samples PipeDream's profiler ran: graph.txt does not say, sizes of tensors tell."""

import re
from collections.abc import Iterable

from pipebench.domain.errors import PipebenchError
from pipebench.formats.pipedream_lines import Node

IMAGE_BYTES = {size: 3 * size * size * 4 for size in (224, 299)}
"""An fp32 RGB image of that many pixels a side."""
_LSTM = re.compile(r"LSTM\(\d+, (\d{1,9})\)")


def infer_batch(inputs: Iterable[Node], nodes: Iterable[Node], source: str) -> int:
    """The profiled mini-batch: from an image Input, else from the state of LSTM layers (batch x hidden floats).

    Raises PipebenchError when neither tells, or they tell several sizes.
    """
    found = {batch for node in inputs if (batch := _images(sum(node.activation_bytes))) is not None}
    found = found or {batch for node in nodes if (batch := _lstm_batch(node)) is not None}
    if len(found) == 1:
        return found.pop()
    told = f"tensors tell {', '.join(map(str, sorted(found)))}" if found else "no tensor tells it"
    raise PipebenchError(
        f"{source}: the size of the profiled mini-batch is not known: {told}", f"say it: {source}[batch=64]"
    )


def _images(total: float) -> int | None:
    sizes = [int(total // image) for image in IMAGE_BYTES.values() if total > 0 and total % image == 0]
    return sizes[0] if len(sizes) == 1 else None


def _lstm_batch(node: Node) -> int | None:
    layer = _LSTM.fullmatch(node.description)
    if layer is None or len(node.activation_bytes) != 3:
        return None
    batch, rest = divmod(node.activation_bytes[1], 4 * int(layer[1]) or 1)
    return int(batch) if batch >= 1 and rest == 0 else None
