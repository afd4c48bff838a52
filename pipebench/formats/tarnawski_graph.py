"""The operator graph of folded nodes: what forward nodes send is a tensor, what backward nodes send its gradient.

An output has one cost, however many groups read it. What a backward node sends back to several groups is one
tensor for each, called `<node>.out-><group>`: names that are equal up to `->` are one output. In the published
layer graphs the backward edges run as the forward ones do; such an output is the gradient of what its forward
node sends.
"""

from pipebench.domain.graph import Operator, OperatorGraph, Tensor
from pipebench.formats.node_names import unique_names
from pipebench.formats.tarnawski_document import TarnawskiDocument
from pipebench.formats.tarnawski_fold import Folded, Output

SHARED = "->"


def build_graph(name: str, document: TarnawskiDocument, folded: Folded, rate: float) -> OperatorGraph:
    """Operators in the order of the groups. rate: bytes that are sent in one unit of the costs."""
    first = [next((n for n in group.nodes if not n.is_backward_node), group.nodes[0]) for group in folded.groups]
    named = unique_names([(node.id, node.name) for node in first])
    names = [named[node.id] for node in first]
    sent = unique_names([(output.node.id, output.node.name) for output in folded.outputs])
    order = _topological_places(folded)
    reads: list[dict[str, None]] = [{} for _ in names]
    tensors: dict[str, Tensor] = {}

    def add(tensor: str, producer: int, readers: tuple[int, ...], forward: float, gradient: float) -> None:
        tensors[tensor] = Tensor(
            name=tensor,
            producer=names[producer],
            forward_bytes_per_sample=forward,
            gradient_bytes_per_sample=gradient,
        )
        for reader in readers:
            reads[reader][tensor] = None

    gradients = _gradients_of_outputs(folded)
    paired = set(gradients.values())
    for output in folded.outputs:
        if output.node.id in paired:
            continue
        size = document.costs[output.node.id] * rate
        later = tuple(group for group in output.readers if order[group] > order[output.group])
        earlier = tuple(group for group in output.readers if order[group] < order[output.group])
        tensor = f"{sent[output.node.id]}.out"
        if later:
            back = gradients.get(output.node.id)
            gradient = 0.0 if back is None else document.costs[back] * rate
            if output.node.is_backward_node:
                add(tensor, output.group, later, 0.0, size)
            else:
                add(tensor, output.group, later, size, gradient)
        for leaf in earlier:
            alone = len(output.readers) == 1
            add(tensor if alone else f"{tensor}{SHARED}{names[leaf]}", leaf, (output.group,), 0.0, size)
    return OperatorGraph(
        name=name,
        operators=tuple(
            Operator(
                name=names[position],
                kind="operator",
                inputs=tuple(reads[position]),
                attributes={
                    "colour": document.colours[group.nodes[0].id],
                    "nodes": len(group.nodes),
                    **({"cpu_only": 1} if group.cpu_only else {}),
                },
            )
            for position, group in enumerate(folded.groups)
        ),
        tensors=tuple(tensors.values()),
    )


def _gradients_of_outputs(folded: Folded) -> dict[int, int]:
    """Forward node to the backward node of its group that sends to the same groups: one tensor, both ways."""
    waiting: dict[tuple[int, tuple[int, ...]], list[Output]] = {}
    for output in folded.outputs:
        if output.node.is_backward_node:
            waiting.setdefault((output.group, tuple(sorted(output.readers))), []).append(output)
    order = _topological_places(folded)
    paired: dict[int, int] = {}
    for output in folded.outputs:
        key = (output.group, tuple(sorted(output.readers)))
        same = not output.node.is_backward_node and waiting.get(key)
        if same and all(order[group] > order[output.group] for group in output.readers):
            paired[output.node.id] = same.pop(0).node.id
    return paired


def _topological_places(folded: Folded) -> list[int]:
    """For each group its place in one topological order."""
    after: list[list[int]] = [[] for _ in folded.groups]
    waiting = [0] * len(folded.groups)
    for before, group in sorted(folded.precedence):
        after[before].append(group)
        waiting[group] += 1
    ready = [group for group in range(len(waiting)) if waiting[group] == 0]
    places = [0] * len(waiting)
    for place in range(len(waiting)):
        group = ready.pop()
        places[group] = place
        for following in after[group]:
            waiting[following] -= 1
            if waiting[following] == 0:
                ready.append(following)
    return places
