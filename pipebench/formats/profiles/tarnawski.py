"""The throughput inputs of Tarnawski et al. (NeurIPS 2020) as a profile, and a profile as one of them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Literal, cast

from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance, Setting
from pipebench.domain.value import Value, require
from pipebench.formats.json_forms import json_form
from pipebench.formats.profiles.format import ProfileFormat, ProfileText, losses, model_name, outputs, setting
from pipebench.formats.profiles.tarnawski_graph import (
    FoldedGraph,
    TarnawskiDocument,
    build_graph,
    fold,
    parse_tarnawski,
)

SECONDS = {"s": 1.0, "ms": 1e-3}
CPU = "cpu"
BYTES_PER_MS = 2.0**31 / 1000
"""The rate where no edge has a size: that of the published operator graphs."""


class TarnawskiOptions(Value, frozen=True, kw_only=True):
    """edge_units: of the costs of edges; the published code takes them to be those of the latencies, ms. device:
    the name of the accelerator as a device type.
    """

    edge_units: Literal["s", "ms"] = "ms"
    device: str = "accelerator"

    def __post_init__(self) -> None:
        require(self.device not in ("", CPU), f"device is {self.device!r}, it must be a name other than {CPU!r}")


def read(data: bytes, source: str, options: Any) -> Profile:
    """The profile in a throughput input. options: TarnawskiOptions.

    Raises PipebenchError with the file and the place inside it, see `parse_tarnawski`.
    """
    chosen = cast(TarnawskiOptions, options)
    document = parse_tarnawski(data, source)
    folded = fold(document)
    rate = _rate(document)
    try:
        graph = build_graph(model_name(source), document, folded, rate)
        accelerator = _costs(graph, folded, chosen.device)
        return Profile(
            name=graph.name,
            graph=graph,
            costs=(accelerator, _costs(graph, folded, CPU)),
            provenance=_provenance(source, document, folded, rate, chosen),
        )
    except InvalidValue as error:
        raise PipebenchError(f"{source}: {error}") from None


def _rate(document: TarnawskiDocument) -> float:
    """Bytes that an edge sends in one unit of its cost, as most edges have it."""
    rates = [edge.size / edge.cost for edge in document.edges if edge.size and edge.cost]
    if not rates:
        return BYTES_PER_MS
    most_common = Counter(f"{rate:.9g}" for rate in rates).most_common(1)[0][0]
    return next(rate for rate in rates if f"{rate:.9g}" == most_common)


def _costs(graph: OperatorGraph, folded: FoldedGraph, device: str) -> DeviceCosts:
    """On the accelerator an operator that only the CPU supports costs what it costs there."""
    operators: list[OperatorCosts] = []
    for operator, group in zip(graph.operators, folded.groups, strict=True):
        on_cpu = device == CPU or group.cpu_only
        times = [0.0, 0.0]
        for node in group.nodes:
            times[int(node.is_backward_node)] += node.cpu_latency if on_cpu else node.fpga_latency
        operators.append(
            OperatorCosts(
                operator=operator.name,
                forward_s=(times[0] / 1e3,),
                backward_s=(times[1] / 1e3,),
                saved_bytes_per_sample=0.0 if device == CPU else sum(node.size for node in group.nodes),
            )
        )
    return DeviceCosts(device_type=device, micro_batches=(1,), operators=tuple(operators))


def _provenance(
    source: str, document: TarnawskiDocument, folded: FoldedGraph, rate: float, options: TarnawskiOptions
) -> Provenance:
    backward = sum(bool(node.is_backward_node) for node in document.nodes)
    bandwidth = rate / SECONDS[options.edge_units]
    notes = [
        f"{len(document.nodes)} nodes, {backward} of them backward, are {len(folded.groups)} operators: nodes of "
        "one colour class together, backward nodes in the operator of their forward node",
        f"costs of edges are read as {options.edge_units} and become bytes at {bandwidth:.6g} bytes/s",
        "sizes of nodes are kept for each sample: the file does not tell weights from activations",
    ]
    if options.edge_units == "ms" and bandwidth > 1e12:
        notes.append(
            "these costs look like s: as ms, they make communication 1000 times too cheap; "
            f"read {Path(source).name}[edge_units=s]"
        )
    only = sum(group.cpu_only for group in folded.groups)
    if only:
        notes.append(f"{only} operators run on the CPU only (attribute cpu_only): its time stands for both")
    return Provenance(
        profiler="Tarnawski JSON",
        made_by=Path(source).name,
        device=options.device,
        saved="size of the nodes, as the file says, weights included",
        notes=tuple(notes),
        setting=Setting(
            devices=document.accelerators or None,
            memory_bytes=document.memory_bytes,
            bandwidth_bytes_s=bandwidth,
        ),
    )


def recognises(data: bytes) -> bool:
    """Whether it is a JSON object with a field that only these inputs have."""
    return json_form(data) == "tarnawski"


FORMAT = ProfileFormat(
    name="tarnawski",
    summary="JSON of the throughput inputs of Tarnawski et al. 2020",
    suffix=".tarnawski.json",
    options=TarnawskiOptions,
    recognises=recognises,
    read=read,
)


_WHAT = "a Tarnawski JSON"


def write(profile: Profile) -> ProfileText:
    """Forward nodes, and a backward node of the same colour where any operator has a backward; times in ms.

    Edges of backward nodes run as those of forward nodes, as in the published layer graphs. Without costs on `cpu`
    there is no CPU, and its latencies are those of the accelerator.
    Raises PipebenchError: more than one accelerator or size, several outputs of an operator; devices, memory or
    bandwidth that nobody said.
    """
    accelerators = [costs for costs in profile.costs if costs.device_type != CPU]
    cpu = next((costs for costs in profile.costs if costs.device_type == CPU), None)
    if len(accelerators) != 1 or len(accelerators[0].micro_batches) != 1:
        raise PipebenchError(
            f"{_WHAT} carries one accelerator and one micro-batch size, {profile.name} has more",
            "say --device and --micro-batch",
        )
    costs = accelerators[0]
    batch = costs.micro_batches[0]
    devices, memory, bandwidth = setting(profile, _WHAT)
    made = outputs(profile, _WHAT)
    graph = profile.graph
    trains = any(each.backward_s[0] for each in costs.operators)
    count = len(graph.operators)
    nodes: list[dict[str, Any]] = []
    for backward in (False, True) if trains else (False,):
        for position, operator in enumerate(graph.operators):
            each = costs.operators[position]
            there = cpu.operators[position] if cpu else each
            held = graph.weight_bytes[position]
            nodes.append(
                {
                    "name": f"{operator.name}grad" if backward else operator.name,
                    "id": position + count * backward,
                    "supportedOnFpga": int("cpu_only" not in operator.attributes),
                    "cpuLatency": 1e3 * (there.backward_s if backward else there.forward_s)[0],
                    "fpgaLatency": 1e3 * (each.backward_s if backward else each.forward_s)[0],
                    "isBackwardNode": int(backward),
                    "colorClass": position,
                    "size": 0.0 if backward else held + each.saved_bytes_per_sample * batch,
                }
            )
    edges: list[dict[str, Any]] = []
    for backward in (False, True) if trains else (False,):
        for producer, tensor in enumerate(made):
            if tensor is None:
                continue
            share = tensor.gradient_bytes_per_sample if backward else tensor.forward_bytes_per_sample
            for reader in graph.consumers[graph.tensor_index[tensor.name]]:
                edges.append(
                    {
                        "sourceId": producer + count * backward,
                        "destId": reader + count * backward,
                        "cost": 1e3 * share * batch / bandwidth,
                        "size": share * batch,
                    }
                )
    content = {
        "maxSizePerFPGA": float(memory),
        "maxFPGAs": devices,
        "maxCPUs": int(cpu is not None),
        "nodes": nodes,
        "edges": edges,
    }
    left_out = losses(profile, costs)
    if graph.parameters:
        left_out.append("which part of a size is weights")
    if any(producer < 0 for producer in graph.producers):
        left_out.append("inputs of the model")
    return ProfileText((json.dumps(content) + "\n").encode(), tuple(left_out))
