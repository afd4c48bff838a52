"""A profile and links that were measured on a card name it as the table of devices does."""

from dataclasses import replace as replace_fields
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.bench.problems.plugin_sources import build_graph, measured_links, profile_graph
from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.formats.devices import load_device
from pipebench.hooks.context import LinkRequest, ProfileRequest
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from tests.plugins.running import services

NAMES = [("NVIDIA H200", "H200-SXM5-141GB"), ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"), ("a card", "a card")]


@pytest.mark.parametrize(("card", "device"), NAMES)
def test_a_profile_is_of_a_device_of_the_table(card: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    host = services().host
    graph = build_graph(host, parse_reference("tiny-mmt"))
    request = ProfileRequest(devices=(load_device("V100-SXM2-16GB"),), micro_batches=(1,))
    made = profile_graph(host, "analytic", graph, request)
    on_card = replace(made, costs=tuple(replace(costs, device_type=card) for costs in made.costs))
    monkeypatch.setattr(Host, "load", lambda *_: lambda *_: on_card)
    whatever = replace_fields(request, devices=(DeviceType(name="cuda", memory_bytes=1),))
    found = profile_graph(host, "analytic", graph, whatever)
    assert found.device_types == (device,)
    assert found.costs[0].operators == made.costs[0].operators


@pytest.mark.parametrize(("card", "device"), NAMES)
def test_links_are_between_devices_of_the_table(card: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    level = LinkLevel(name="node", group=2, bandwidth_bytes_s=1e9)
    cluster = Cluster(
        name="measured", types=(DeviceType(name=card, memory_bytes=1),), devices=(card, card), levels=(level,)
    )

    def measured(*_: Any) -> Cluster:
        return cluster

    monkeypatch.setattr(Host, "load", lambda *_: measured)
    found = measured_links(services().host, "torch", LinkRequest(2, "cuda"))
    assert ([kind.name for kind in found.types], found.devices) == ([device], (device, device))
