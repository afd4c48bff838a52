"""A profile as PipeDream's graph.txt."""

import re

from pipebench.domain.profile import Profile
from pipebench.formats.carried import lost, number, outputs, own_parameter_bytes, single
from pipebench.formats.pipedream_graph import KINDS
from pipebench.formats.profile_format import Written

_NODE = re.compile(r"node\d{1,18}", re.ASCII)
_WHAT = "a graph.txt"


def write(profile: Profile) -> Written:
    """Nodes and edges; inputs of the model become Input nodes without times.

    Raises PipebenchError: several device types or sizes, several outputs of an operator, a shared parameter.
    """
    costs, batch = single(profile, _WHAT)
    made, weights = outputs(profile, _WHAT), own_parameter_bytes(profile, _WHAT)
    graph = profile.graph
    names = _identifiers(profile)
    descriptions = {kind: module for module, kind in KINDS.items()}
    lines: list[str] = []
    for operator, name, each, tensor, held in zip(
        graph.operators, names, costs.operators, made, weights, strict=True
    ):
        kind = descriptions.get(operator.kind) or re.sub(r"\W+", "_", operator.kind)
        label = kind if name == operator.name else f"{kind}({operator.name})"
        stage = operator.attributes.get("stage_id")
        lines.append(
            _node(
                name,
                label,
                each.forward_s[0],
                each.backward_s[0],
                None if tensor is None else tensor.forward_bytes_per_sample * batch,
                held,
            )
            + ("" if stage is None else f" -- stage_id={stage}")
        )
    edges: list[str] = []
    taken = max((int(name[4:]) for name in names), default=0)
    for position, (tensor, producer) in enumerate(zip(graph.tensors, graph.producers, strict=True)):
        source = names[producer] if producer >= 0 else f"node{taken + 1 + position}"
        if producer < 0:
            lines.append(_node(source, f"Input{position}", 0.0, 0.0, tensor.forward_bytes_per_sample * batch, 0))
        edges += [f"\t{source} -- {names[reader]}" for reader in graph.consumers[position]]
    left_out = lost(profile, costs)
    if any(
        t.producer is not None and t.gradient_bytes_per_sample != t.forward_bytes_per_sample for t in graph.tensors
    ):
        left_out.append("sizes of gradients that differ from those of their tensors")
    left_out.append(
        f"the mini-batch of {batch} samples and what each operator saves: read it with [batch={batch}]"
    )
    return Written("\n".join([*lines, *edges, ""]).encode(), tuple(left_out))


def _identifiers(profile: Profile) -> list[str]:
    """The names where all are node<number> in the order of the graph, else node1, node2, … in that order."""
    names = [operator.name for operator in profile.graph.operators]
    if all(_NODE.fullmatch(name) for name in names):
        numbers = [int(name[4:]) for name in names]
        if numbers == sorted(set(numbers)):
            return names
    return [f"node{position}" for position in range(1, len(names) + 1)]


def _node(name: str, label: str, forward_s: float, backward_s: float, sent: float | None, held: int) -> str:
    return (
        f"{name} -- {label} -- forward_compute_time={number(_ms(forward_s))}, "
        f"backward_compute_time={number(_ms(backward_s))}, activation_size={number(_whole(sent or 0.0))}, "
        f"parameter_size={held}"
    )


def _ms(seconds: float) -> float:
    """Milliseconds that read back as the same seconds, the shortest of the two or three near ones."""
    near = float(f"{seconds * 1e3:.15g}")
    return near if near / 1e3 == seconds else seconds * 1e3


def _whole(size: float) -> float:
    """Bytes that were divided by the samples of a mini-batch are whole again."""
    return float(round(size)) if abs(size - round(size)) <= 1e-9 * max(1.0, size) else size
