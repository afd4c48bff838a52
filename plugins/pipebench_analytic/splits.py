"""How a contraction is split over devices (Shoeybi et al. 2019, Megatron-LM, section 3).

Every split takes and gives whole tensors, with exceptions that save communication: of two linears in a row
the first leaves its output split and the second takes it so, as in Megatron's feed-forward part; and see regions.
"""

from dataclasses import dataclass
from typing import Literal

from pipebench.domain.graph import OperatorGraph
from pipebench_analytic.regions import Regions, shared_dim
from pipebench_analytic.work import Work


@dataclass(frozen=True, slots=True)
class Split:
    """One operator over several devices: the dim that is cut, what arrives or leaves in pieces, what is sent.

    Bytes for one sample: gathered_forward pass an all-gather, reduced_* an all-reduce in that direction. parts:
    what the number of devices has to divide, 0: the dim.
    """

    dim: str
    split_inputs: bool = False
    split_outputs: bool = False
    gathered_forward: float = 0.0
    reduced_forward: float = 0.0
    reduced_backward: float = 0.0
    parts: int = 0

    @property
    def collective_bytes(self) -> float:
        """Bytes a sample all-reduced in each direction, the mean of both; an all-gather counts half."""
        return (self.gathered_forward / 2 + self.reduced_forward + self.reduced_backward) / 2


def linear_pairs(graph: OperatorGraph) -> dict[int, int]:
    """First to second linear of each pair: nothing else reads what the first makes. Pairs do not overlap."""
    pairs: dict[int, int] = {}
    seconds: set[int] = set()
    for position in graph.topological:
        after = graph.successors[position]
        if position in seconds or len(after) != 1 or len(graph.predecessors[after[0]]) != 1:
            continue
        if graph.operators[position].kind == graph.operators[after[0]].kind == "linear":
            pairs[position] = after[0]
            seconds.add(after[0])
    return pairs


def region_split(work: Work, position: int, found: Regions) -> Split | None:
    """The split of an operator of a region, None outside. Linears that read the same input reduce its gradient
    together, a share each.
    """
    parts = found.parts.get(position, 0)
    if position in found.columns:
        reduced = work.input_bytes / found.columns[position] if work.input_has_gradient else 0.0
        return Split("out_features", split_outputs=True, reduced_backward=reduced, parts=parts)
    if position in found.rows:
        return Split("in_features", split_inputs=True, reduced_forward=work.output_bytes, parts=parts)
    if position in found.within:
        return Split(shared_dim(work.operator), split_inputs=True, split_outputs=True, parts=parts)
    return None


def split_of(work: Work, place: Literal["alone", "first", "second"]) -> Split | None:
    """The split of an operator, None where there is none. place: a linear's place in its pair."""
    output = work.output_bytes
    input_gradient = work.input_bytes if work.input_has_gradient else 0.0
    match work.operator.kind, place:
        case "attention", _:
            return Split("heads", reduced_forward=output, reduced_backward=input_gradient)
        case "conv2d", _:
            return Split(
                "out_channels", split_outputs=True, gathered_forward=output, reduced_backward=input_gradient
            )
        case "linear", "second":
            return Split("in_features", split_inputs=True, reduced_forward=output)
        case "linear", _:
            gathered = 0.0 if place == "first" else output
            return Split(
                "out_features", split_outputs=True, gathered_forward=gathered, reduced_backward=input_gradient
            )
    return None
