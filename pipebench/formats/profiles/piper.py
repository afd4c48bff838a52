"""Piper's JSON as a profile, and a profile as Piper's JSON."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.graph import Operator, OperatorGraph, Parameter, Tensor
from pipebench.domain.profile import Alternative, DeviceCosts, OperatorCosts, Profile, Provenance, Setting
from pipebench.domain.value import Value, require
from pipebench.formats.json_forms import json_form
from pipebench.formats.profiles.format import (
    ProfileFormat,
    ProfileText,
    losses,
    model_name,
    setting,
    single,
    unique_names,
)
from pipebench.formats.profiles.piper_document import PiperDocument, PiperEdge, PiperNode, Tmpc, parse_piper

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
SUSPICIOUS_SECONDS = 10.0
"""No micro-batch of the published files takes longer; a larger sum is more likely in milliseconds."""
WEIGHT_COPIES = 2
"""Copies of parameterSize that memoryUsageB holds: weights and gradients."""


class PiperOptions(Value, frozen=True, kw_only=True):
    """units: of the times in the file; Piper's code takes them to be those of the bandwidth, `s`. device: the
    device type to file the costs under; the file does not name it.
    """

    units: Literal["s", "ms", "us"] = "s"
    device: str = "profiled-gpu"

    def __post_init__(self) -> None:
        require(self.device != "", "device is empty")


def read(data: bytes, source: str, options: Any) -> Profile:
    """The profile in a Piper JSON. options: PiperOptions.

    Raises PipebenchError with the file and the place inside it, see `parse_piper`; and for a cycle.
    """
    chosen = cast(PiperOptions, options)
    document = parse_piper(data, source)
    names = unique_names([(node.identifier, node.name) for node in document.nodes])
    tensors = _Tensors(document, names)
    try:
        graph = _graph(model_name(source), document, names, tensors)
        costs = DeviceCosts(
            device_type=chosen.device,
            micro_batches=(1,),
            operators=tuple(_costs(node, names, tensors, SECONDS[chosen.units]) for node in document.nodes),
        )
        return Profile(
            name=graph.name, graph=graph, costs=(costs,), provenance=_provenance(source, document, costs, chosen)
        )
    except InvalidValue as error:
        raise PipebenchError(f"{source}: {error}") from None


class _Tensors:
    """The edges of a document as tensors: one for each source, size and synchronisation."""

    def __init__(self, document: PiperDocument, names: dict[int, str]) -> None:
        self.of_edge: dict[tuple[int, int], str] = {}
        self.all: list[Tensor] = []
        nodes = {node.identifier: node for node in document.nodes}
        known: dict[tuple[Any, ...], str] = {}
        made: Counter[int] = Counter()
        for edge in document.edges:
            key = (edge.source_id, edge.communication_cost, *_syncs(nodes[edge.source_id], edge))
            if key not in known:
                made[edge.source_id] += 1
                number = made[edge.source_id]
                known[key] = f"{names[edge.source_id]}.out" + (f"{number}" if number > 1 else "")
                self.all.append(
                    Tensor(
                        name=known[key],
                        producer=names[edge.source_id],
                        forward_bytes_per_sample=edge.communication_cost,
                        gradient_bytes_per_sample=edge.communication_cost,
                    )
                )
            self.of_edge[edge.source_id, edge.dest_id] = known[key]


def _syncs(node: PiperNode, edge: PiperEdge) -> list[float]:
    key = str(edge.dest_id)
    return [tmpc.sync_time_bw.get(key, 0.0) for tmpcs in node.tmpcs.values() for tmpc in tmpcs]


def _graph(name: str, document: PiperDocument, names: dict[int, str], tensors: _Tensors) -> OperatorGraph:
    reads: dict[int, dict[str, None]] = {node.identifier: {} for node in document.nodes}
    for edge in document.edges:
        reads[edge.dest_id][tensors.of_edge[edge.source_id, edge.dest_id]] = None
    plain = {node.identifier: plain_tmpc(node.tmpcs[1]) for node in document.nodes}
    weighted = [node.identifier for node in document.nodes if plain[node.identifier].parameter_size]
    return OperatorGraph(
        name=name,
        operators=tuple(
            Operator(
                name=names[node.identifier],
                kind=node.name or "operator",
                inputs=tuple(reads[node.identifier]),
                parameters=(f"{names[node.identifier]}.parameters",) if node.identifier in weighted else (),
                attributes={"id": node.identifier},
            )
            for node in document.nodes
        ),
        tensors=tuple(tensors.all),
        parameters=tuple(
            Parameter(name=f"{names[i]}.parameters", bytes=round(plain[i].parameter_size)) for i in weighted
        ),
    )


def plain_tmpc(tmpcs: Sequence[Tmpc]) -> Tmpc:
    """The first that recomputes nothing; the first of all where each recomputes."""
    return next((tmpc for tmpc in tmpcs if not recomputes(tmpc)), tmpcs[0])


def recomputes(tmpc: Tmpc) -> bool:
    """Told by its id ("activation recomp"): the document has no field for it."""
    return "recomp" in tmpc.id.lower()


def _costs(node: PiperNode, names: dict[int, str], tensors: _Tensors, unit_s: float) -> OperatorCosts:
    alternatives: list[Alternative] = []
    for degree, tmpcs in node.tmpcs.items():
        forward = plain_tmpc(tmpcs).time_per_sample / 3
        for tmpc in tmpcs:
            first = forward if forward <= tmpc.time_per_sample else tmpc.time_per_sample / 3
            alternatives.append(
                Alternative(
                    id=f"tp{degree} {tmpc.id}",
                    tensor_parallel=degree,
                    recompute=recomputes(tmpc),
                    forward_s=(first * unit_s,),
                    backward_s=((tmpc.time_per_sample - first) * unit_s,),
                    parameter_bytes=round(tmpc.parameter_size),
                    saved_bytes_per_sample=tmpc.memory_usage_a,
                    fixed_bytes=round(max(0.0, tmpc.memory_usage_b - WEIGHT_COPIES * tmpc.parameter_size)),
                    boundary_bytes=_boundary(node, tmpc, tensors),
                )
            )
    plain = next(a for a in alternatives if a.id == f"tp1 {plain_tmpc(node.tmpcs[1]).id}")
    return OperatorCosts(
        operator=names[node.identifier],
        forward_s=plain.forward_s,
        backward_s=plain.backward_s,
        saved_bytes_per_sample=plain.saved_bytes_per_sample,
        alternatives=tuple(alternatives),
    )


def _boundary(node: PiperNode, tmpc: Tmpc, tensors: _Tensors) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for key, size in tmpc.sync_time_fw.items():
        if size:
            found[tensors.of_edge[int(key), node.identifier]] = (size, 0.0)
    for key, size in tmpc.sync_time_bw.items():
        if size:
            found[tensors.of_edge[node.identifier, int(key)]] = (0.0, size)
    return found


def _provenance(source: str, document: PiperDocument, costs: DeviceCosts, options: PiperOptions) -> Provenance:
    unit = options.units
    total = sum(operator.forward_s[0] + operator.backward_s[0] for operator in costs.operators)
    notes = [
        "a sample is one micro-batch of the file",
        f"times are read as {unit}: {total / SECONDS[unit]:.6g} {unit} for one micro-batch on one device; the "
        "bandwidth as bytes/s",
        "joint forward and backward times are split 1:2",
        f"{WEIGHT_COPIES} x parameterSize (weights and gradients) is taken out of memoryUsageB",
    ]
    if unit == "s" and total > SUSPICIOUS_SECONDS:
        notes.append(
            "these times look like ms: as s, they make communication 1000 times too cheap; "
            f"read {Path(source).name}[units=ms]"
        )
    missing = sum(
        tmpc.memory_usage_b < WEIGHT_COPIES * tmpc.parameter_size * (1 - 1e-9)
        for node in document.nodes
        for tmpcs in node.tmpcs.values()
        for tmpc in tmpcs
    )
    if missing:
        notes.append(f"memoryUsageB of {missing} TMPCs is smaller than weights and gradients: taken as 0 besides")
    return Provenance(
        profiler="Piper JSON",
        made_by=Path(source).name,
        device=options.device,
        saved="memoryUsageA: bytes that each live micro-batch keeps, as the file says",
        notes=tuple(notes),
        setting=Setting(
            devices=document.devices,
            memory_bytes=document.memory_bytes,
            bandwidth_bytes_s=document.bandwidth,
            mini_batch=document.micro_batches,
        ),
    )


def recognises(data: bytes) -> bool:
    """Whether it is a JSON object with a field that only Piper has."""
    return json_form(data) == "piper"


FORMAT = ProfileFormat(
    name="piper",
    summary="JSON of the Piper planner",
    suffix=".piper.json",
    options=PiperOptions,
    recognises=recognises,
    read=read,
)


_WHAT = "a Piper JSON"


def write(profile: Profile) -> ProfileText:
    """One node for each operator, times in seconds, a micro-batch as the unit.

    Raises PipebenchError: several device types or sizes; devices, memory, bandwidth or mini-batch that nobody
    said.
    """
    costs, batch = single(profile, _WHAT)
    devices, memory, bandwidth = setting(profile, _WHAT)
    found = profile.provenance.setting
    if not found or found.mini_batch is None:
        raise PipebenchError(f"{_WHAT} names the mini-batch, {profile.name} does not", "say --mini-batch")
    if found.mini_batch % batch:
        raise PipebenchError(f"the micro-batch of {batch} does not divide the mini-batch of {found.mini_batch}")
    graph = profile.graph
    own_ids = [operator.attributes.get("id", -1) for operator in graph.operators]
    ids = own_ids if len(set(own_ids)) == len(own_ids) and min(own_ids) >= 0 else list(range(len(own_ids)))
    edges = [
        {
            "sourceId": ids[producer],
            "destId": ids[reader],
            "communicationCost": (tensor.forward_bytes_per_sample + tensor.gradient_bytes_per_sample) / 2 * batch,
        }
        for tensor, producer, readers in zip(graph.tensors, graph.producers, graph.consumers, strict=True)
        if producer >= 0
        for reader in readers
    ]
    pairs = [(edge["sourceId"], edge["destId"]) for edge in edges]
    if len(set(pairs)) < len(pairs):
        raise PipebenchError(f"{_WHAT} carries one edge between two nodes, {profile.name} has several")
    nodes = [
        {
            "id": ids[position],
            "name": operator.kind if f"{operator.kind}#{ids[position]}" == operator.name else operator.name,
            "TMPCs": _tmpcs(profile, position, each, ids, batch),
        }
        for position, (operator, each) in enumerate(zip(graph.operators, costs.operators, strict=True))
    ]
    content = {
        "maxDevices": devices,
        "maxMemoryPerDevice": float(memory),
        "bandwidth": bandwidth,
        "mbsInBatch": found.mini_batch // batch,
        "nodes": nodes,
        "edges": edges,
    }
    left_out = losses(profile, costs, alternatives=False)
    if any(c.collective_bytes for each in costs.operators for c in each.alternatives):
        left_out.append("bytes of collectives inside a stage (their time stays in the times)")
    if any(producer < 0 for producer in graph.producers):
        left_out.append("inputs of the model")
    if any(
        tensor.producer is not None and tensor.gradient_bytes_per_sample != tensor.forward_bytes_per_sample
        for tensor in graph.tensors
    ):
        left_out.append("sizes of gradients that differ from those of their tensors: edges have the mean")
    left_out.append("how times split into forward and backward")
    return ProfileText((json.dumps(content) + "\n").encode(), tuple(left_out))


def _tmpcs(
    profile: Profile, position: int, each: OperatorCosts, ids: list[int], batch: int
) -> dict[str, list[dict[str, Any]]]:
    graph = profile.graph
    operator = graph.operators[position]
    ways = list(each.alternatives)
    if not any(way.tensor_parallel == 1 and not way.recompute for way in ways):
        held = graph.weight_bytes[position]
        plain = Alternative(
            id="vanilla",
            forward_s=each.forward_s,
            backward_s=each.backward_s,
            parameter_bytes=held,
            saved_bytes_per_sample=each.saved_bytes_per_sample,
        )
        ways.insert(0, plain)
    before = {
        tensor: graph.producers[graph.tensor_index[tensor]]
        for tensor in operator.inputs
        if graph.producers[graph.tensor_index[tensor]] >= 0
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for way in ways:
        name = way.id.removeprefix(f"tp{way.tensor_parallel} ")
        crossing = way.boundary_bytes
        found.setdefault(str(way.tensor_parallel), []).append(
            {
                "id": f"{name} recomp" if way.recompute and "recomp" not in name.lower() else name,
                "timePerSample": way.forward_s[0] + way.backward_s[0],
                "parameterSize": float(way.parameter_bytes),
                "memoryUsageA": way.saved_bytes_per_sample * batch,
                "memoryUsageB": float(way.fixed_bytes + WEIGHT_COPIES * way.parameter_bytes),
                "syncTimeFw": {
                    str(ids[producer]): crossing.get(tensor, (0.0, 0.0))[0] * batch
                    for tensor, producer in before.items()
                },
                "syncTimeBw": {
                    str(ids[reader]): crossing.get(graph.tensors[tensor].name, (0.0, 0.0))[1] * batch
                    for tensor in graph.outputs[position]
                    for reader in graph.consumers[tensor]
                },
            }
        )
    return found
