"""A profile as a throughput input of Tarnawski et al."""

import json
from typing import Any

from pipebench.domain.errors import PipebenchError
from pipebench.domain.profile import Profile
from pipebench.formats.carried import lost, outputs, setting
from pipebench.formats.profile_format import Written
from pipebench.formats.tarnawski import CPU

_WHAT = "a Tarnawski JSON"


def write(profile: Profile) -> Written:
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
            held = sum(graph.parameter_bytes[name] for name in operator.parameters)
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
    left_out = lost(profile, costs)
    if graph.parameters:
        left_out.append("which part of a size is weights")
    if any(producer < 0 for producer in graph.producers):
        left_out.append("inputs of the model")
    return Written((json.dumps(content) + "\n").encode(), tuple(left_out))
