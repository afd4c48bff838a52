"""PipeDream's published profiles, totals counted apart from the reader."""

import re

import pytest

from pipebench.formats.profiles.files import read_profile
from tests.shared_data import shared_data

FILES = ("alexnet", "densenet121", "gnmt", "inception_v3", "resnet50", "vgg16")
UNREAD_ITEMS = {"gnmt": 8}
BATCH = {"alexnet": 256, "densenet121": 64, "gnmt": 32, "inception_v3": 128, "resnet50": 128, "vgg16": 128}


def total(lines: list[str], field: str) -> float:
    return sum(float(match[1]) for line in lines if (match := re.search(rf"{field}=(\S+?)(,|$)", line)))


@pytest.mark.parametrize("name", FILES)
def test_nodes_times_and_parameters(name: str) -> None:
    path = shared_data(f"pipedream/{name}.txt")
    lines = [line for line in path.read_text().splitlines() if re.match(r"node\d+ -- (?!Input\d* -- )", line)]
    profile = read_profile(str(path))
    costs = profile.costs[0]
    assert profile.name == name
    assert costs.micro_batches == (BATCH[name],)
    assert len(profile.graph.operators) == len(lines) - UNREAD_ITEMS.get(name, 0)
    assert sum(c.forward_s[0] for c in costs.operators) == pytest.approx(
        total(lines, "forward_compute_time") / 1e3
    )
    assert sum(c.backward_s[0] for c in costs.operators) == pytest.approx(
        total(lines, "backward_compute_time") / 1e3
    )
    assert sum(profile.graph.parameter_bytes.values()) == total(lines, "parameter_size")


@pytest.mark.parametrize("name", FILES)
def test_edges_and_activations(name: str) -> None:
    """Every edge between nodes that stay is a tensor read; every listed size is in one tensor."""
    path = shared_data(f"pipedream/{name}.txt")
    text = path.read_text()
    graph = read_profile(str(path)).graph
    edges = {(a, b) for a, b in re.findall(r"^\t(\S+) -- (\S+)", text, re.MULTILINE)}
    reads = {(read.removesuffix(".out"), op.name) for op in graph.operators for read in op.inputs}
    assert reads == {(a, b) for a, b in edges if b in graph.index}
    for identifier, listed in re.findall(r"^(\S+) -- .*activation_size=\[?([^\],]*)", text, re.MULTILINE):
        if identifier in graph.index:
            expected = sum(map(float, listed.split(";"))) / BATCH[name]
            tensor = graph.tensors[graph.tensor_index[f"{identifier}.out"]]
            assert tensor.forward_bytes_per_sample == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "layers", "gigabytes"),
    [("resnet50", 39, 8.8), ("inception_v3", 33, 5.8), ("densenet121", 77, 10.6), ("vgg16", 39, 18.4)],
)
def test_boundary_gives_the_layers_and_activations_of_the_madpipe_study(
    name: str, layers: int, gigabytes: float
) -> None:
    """Single-tensor cuts, and what they keep at a batch of 8 images of 1000 x 1000."""
    profile = read_profile(str(shared_data(f"pipedream/{name}.txt")), {"saved": "boundary"})
    kept = [c.saved_bytes_per_sample for c in profile.costs[0].operators]
    side = 299 if name == "inception_v3" else 224
    assert len(kept) == layers
    assert 8 * sum(kept) * 1000**2 / side**2 / 1e9 == pytest.approx(gigabytes, abs=0.05)


def test_resnet50_has_the_published_parameters() -> None:
    profile = read_profile(str(shared_data("pipedream/resnet50.txt")))
    assert sum(profile.graph.parameter_bytes.values()) == 4 * 25_557_032


def test_data_loading_does_not_count() -> None:
    profile = read_profile(str(shared_data("pipedream/resnet50.txt")))
    assert any("18.962 ms of data loading" in note for note in profile.provenance.notes)
