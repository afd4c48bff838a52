"""The JSON of Tarnawski et al. (NeurIPS 2020, throughput inputs) as a profile.

A sample of the profile is one sample of the file. An operator is a group of nodes that share a device, forward and
backward nodes together (`tarnawski_fold`); latencies are in ms, on two device types: the accelerator first, then
`cpu`. `size` does not tell weights from activations: all of it is kept for each sample, on the accelerator only.

The cost of an edge is a time, a tensor has bytes: the cost times the rate that is most common among the sizes and
costs of the edges, which is the bandwidth of the file's setting (`tarnawski_graph`).
"""

from collections import Counter
from pathlib import Path
from typing import Any, Literal, cast

from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.graph import OperatorGraph
from pipebench.domain.profile import DeviceCosts, OperatorCosts, Profile, Provenance, Setting
from pipebench.domain.value import Value, require
from pipebench.formats.node_names import model_name
from pipebench.formats.profile_format import ProfileFormat
from pipebench.formats.tarnawski_document import TarnawskiDocument, parse_tarnawski
from pipebench.formats.tarnawski_fold import Folded, fold
from pipebench.formats.tarnawski_graph import build_graph

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


def _costs(graph: OperatorGraph, folded: Folded, device: str) -> DeviceCosts:
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
    source: str, document: TarnawskiDocument, folded: Folded, rate: float, options: TarnawskiOptions
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
    return data.lstrip()[:1] == b"{" and any(
        name in data for name in (b'"maxSizePerFPGA"', b'"maxFPGAs"', b'"fpgaLatency"')
    )


FORMAT = ProfileFormat(
    name="tarnawski",
    summary="JSON of the throughput inputs of Tarnawski et al. 2020",
    suffix=".tarnawski.json",
    options=TarnawskiOptions,
    recognises=recognises,
    read=read,
)
