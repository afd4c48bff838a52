"""A profile as Piper's JSON."""

import json
from typing import Any

from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Alternative, OperatorCosts, Profile
from pipebench.formats.carried import lost, setting, single
from pipebench.formats.piper import WEIGHT_COPIES
from pipebench.formats.profile_format import Written

_WHAT = "a Piper JSON"


def write(profile: Profile) -> Written:
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
    left_out = lost(profile, costs, alternatives=False)
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
    return Written((json.dumps(content) + "\n").encode(), tuple(left_out))


def _tmpcs(
    profile: Profile, position: int, each: OperatorCosts, ids: list[int], batch: int
) -> dict[str, list[dict[str, Any]]]:
    graph = profile.graph
    operator = graph.operators[position]
    ways = list(each.alternatives)
    if not any(way.tensor_parallel == 1 and not way.recompute for way in ways):
        held = sum(graph.parameter_bytes[name] for name in operator.parameters)
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
