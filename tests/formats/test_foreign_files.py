"""Every shared file of a foreign format is read; totals are counted apart from the readers."""

import json

import pytest

from pipebench.formats.profiles.files import read_any, read_profile
from tests.shared_data import shared_data

PIPER = ("bert32a100", "gnmt")
TARNAWSKI = (
    "LayerGraphs/bert24_inference",
    "LayerGraphs/bert24_training",
    "LayerGraphs/inceptionv3_inference",
    "LayerGraphs/resnet50_training",
    "OperatorGraphs/bert_l-3_inference",
    "OperatorGraphs/bert_l-3_training",
)


@pytest.mark.parametrize("name", PIPER)
@pytest.mark.parametrize(("units", "seconds"), [("s", 1.0), ("ms", 1e-3)])
def test_piper(name: str, units: str, seconds: float) -> None:
    path = shared_data(f"piper/{name}.json")
    content = json.loads(path.read_text())
    profile = read_profile(str(path), {"units": units})
    costs = profile.costs[0]
    assert read_any(str(path))[0] == "profile"
    assert len(profile.graph.operators) == len(content["nodes"])
    assert sum(len(readers) for readers in profile.graph.consumers) == len(content["edges"])
    for node, operator, graph_operator in zip(
        content["nodes"], costs.operators, profile.graph.operators, strict=True
    ):
        listed = [(int(t), tmpc) for t, tmpcs in node["TMPCs"].items() for tmpc in tmpcs]
        assert graph_operator.attributes["id"] == node["id"]
        assert len(operator.alternatives) == len(listed)
        for (degree, tmpc), way in zip(listed, operator.alternatives, strict=True):
            assert way.tensor_parallel == degree
            assert way.recompute == (tmpc["id"] == "activation recomp")
            assert way.forward_s[0] + way.backward_s[0] == pytest.approx(tmpc["timePerSample"] * seconds)
            assert way.parameter_bytes == pytest.approx(tmpc["parameterSize"], abs=1)
            assert way.fixed_bytes + 2 * tmpc["parameterSize"] == pytest.approx(tmpc["memoryUsageB"], abs=1)
            assert way.saved_bytes_per_sample == tmpc["memoryUsageA"]
            assert sum(forward for forward, _ in way.boundary_bytes.values()) == sum(tmpc["syncTimeFw"].values())
    tensor = profile.graph.tensors[profile.graph.tensor_index[profile.graph.operators[-1].inputs[0]]]
    assert tensor.forward_bytes_per_sample in {edge["communicationCost"] for edge in content["edges"]}


@pytest.mark.parametrize("name", TARNAWSKI)
def test_tarnawski(name: str) -> None:
    path = shared_data(f"tarnawski/{name}.json")
    content = json.loads(path.read_text())
    profile = read_profile(str(path))
    assert read_any(str(path))[0] == "profile"
    for costs, field in zip(profile.costs, ("fpgaLatency", "cpuLatency"), strict=True):
        for backward in (False, True):
            times = [c.backward_s[0] if backward else c.forward_s[0] for c in costs.operators]
            expected = sum(node[field] for node in content["nodes"] if node["isBackwardNode"] == backward)
            assert sum(times) * 1e3 == pytest.approx(expected)
    accelerator = profile.costs[0].operators
    assert sum(c.saved_bytes_per_sample for c in accelerator) == pytest.approx(
        sum(node["size"] for node in content["nodes"])
    )
    colours = {node.get("colorClass", f"own {node['id']}") for node in content["nodes"]}
    assert len(profile.graph.operators) <= len(colours)


@pytest.mark.parametrize("name", TARNAWSKI)
def test_tarnawski_transfers_cost_what_the_file_says(name: str) -> None:
    """Over the bandwidth of the setting: each output once, forward and backward."""
    path = shared_data(f"tarnawski/{name}.json")
    content = json.loads(path.read_text())
    profile = read_profile(str(path))
    setting = profile.provenance.setting
    assert setting
    assert setting.bandwidth_bytes_s
    nodes = {node["id"]: node for node in content["nodes"]}
    colour = {i: node.get("colorClass", f"own {i}") for i, node in nodes.items()}
    cost = {
        edge["sourceId"]: edge["cost"]
        for edge in content["edges"]
        if colour[edge["sourceId"]] != colour[edge["destId"]]
    }
    sent = sum(t.forward_bytes_per_sample + t.gradient_bytes_per_sample for t in profile.graph.tensors)
    if name.startswith("Layer") or "inference" in name:
        assert 1e3 * sent / setting.bandwidth_bytes_s == pytest.approx(sum(cost.values()))
    else:  # forward cycles join colours, what stays inside them is not sent
        assert 0 < 1e3 * sent / setting.bandwidth_bytes_s <= sum(cost.values()) * (1 + 1e-9)
