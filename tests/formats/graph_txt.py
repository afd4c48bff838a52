"""A small graph.txt for tests, and a call that reads text."""

from typing import Any

from pipebench.domain.profile import Profile
from pipebench.formats.profiles.pipedream import PipeDreamOptions, read

IMAGES = 2 * 3 * 224 * 224 * 4
"""Bytes of two fp32 images."""


def node(
    name: str,
    description: str,
    forward: float | str = 0,
    backward: float | str = 0,
    activation: float | str = 0,
    parameters: float | str = 0,
    stage: str = "",
) -> str:
    """One node line; the identifier is `name`."""
    return (
        f"{name} -- {description} -- forward_compute_time={forward}, backward_compute_time={backward}, "
        f"activation_size={activation}, parameter_size={parameters}{stage}\n"
    )


DIAMOND = (
    node("node3", "Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1))", 3.5, 7, 400, 64)
    + node("node1", "Input", 99, 0, IMAGES)
    + node("node2", "Conv2d(3, 8, kernel_size=(1, 1), stride=(1, 1))", 2, 4, 800, 32)
    + node("node4", "Add", 0.25, 0.5, 400)
    + node("node5", "Linear(in_features=8, out_features=2, bias=True)", 1, 2, 16, 128)
    + "\tnode1 -- node2\n\tnode2 -- node3\n\tnode2 -- node4\n\tnode3 -- node4\n\tnode4 -- node5\n"
)
"""Two samples; node2 is read by node3 and by node4."""


def read_text(text: str, **options: Any) -> Profile:
    """The profile in the text of a graph.txt called net.txt."""
    return read(text.encode(), "net.txt", PipeDreamOptions(**options))
