"""Clusters that ship, for any number of devices, memory and bandwidth."""

import json
from typing import Any

import pytest

from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import PipebenchError
from pipebench.formats.clusters import cluster_names, cluster_table, load_cluster
from tests.shared_data import shared_data


def levels(cluster: Cluster) -> list[tuple[str, int, float, float | None]]:
    """Name, group, GB/s of a device, GB/s shared."""
    return [
        (
            level.name,
            level.group,
            level.bandwidth_bytes_s / 1e9,
            None if level.shared_bandwidth_bytes_s is None else level.shared_bandwidth_bytes_s / 1e9,
        )
        for level in cluster.levels
    ]


def test_summit_is_the_graphpipe_papers() -> None:
    cluster = load_cluster("summit", 8)
    assert levels(cluster) == [("node", 4, 50, None), ("network", 8, 12.5, 12.5)]
    assert cluster.devices == ("V100-SXM2-16GB",) * 8
    assert cluster.memory_bytes == 16 * 10**9


def test_effective_rates_are_a_choice() -> None:
    assert levels(load_cluster("summit", 8, rates="effective")) == [("node", 4, 40, None), ("network", 8, 12, 12)]


def test_an_unknown_effective_rate_is_the_nominal_one() -> None:
    assert levels(load_cluster("dgx-a100", 16, rates="effective"))[1] == ("network", 16, 25, 200)


@pytest.mark.parametrize(("devices", "names"), [(1, ["node"]), (4, ["node"]), (5, ["node", "network"])])
def test_only_levels_that_the_devices_span_are_there(devices: int, names: list[str]) -> None:
    assert [level.name for level in load_cluster("summit", devices).levels] == names


def test_madpipe_is_half_duplex() -> None:
    cluster = load_cluster("madpipe", 8, memory="3GB")
    assert (cluster.link_mode, cluster.memory_bytes) == ("half", 3 * 10**9)
    assert levels(cluster) == [("link", 8, 12, None)]


def test_memory_and_bandwidth_replace_the_tables() -> None:
    cluster = load_cluster("summit", 8, memory="12GiB", bandwidth="24GB/s")
    assert cluster.memory_bytes == 12 * 2**30
    assert levels(cluster) == [("node", 4, 24, None), ("network", 8, 24, None)]
    assert [level.latency_s for level in cluster.levels] == [5e-6, 15e-6]


def test_a_cluster_without_a_device_takes_the_one_asked_for() -> None:
    assert load_cluster("flat", 2, device_type="A100-SXM4-40GB").memory_bytes == 40 * 10**9
    unknown = load_cluster("flat", 2, device_type="profiled-gpu", memory="12GB")
    assert (unknown.devices, unknown.memory_bytes) == (("profiled-gpu",) * 2, 12 * 10**9)


def test_a_cluster_with_a_device_keeps_it() -> None:
    assert load_cluster("dgx-h100", 2, device_type="A100-SXM4-40GB").devices == ("H100-SXM5-80GB",) * 2


@pytest.mark.parametrize("name", cluster_names())
@pytest.mark.parametrize("devices", [1, 3, 8, 32])
def test_every_cluster_has_any_size(name: str, devices: int) -> None:
    cluster = load_cluster(name, devices)
    assert cluster.size == devices
    assert cluster.levels[-1].group >= devices
    rates = [level.bandwidth_bytes_s for level in cluster.levels]
    assert rates == sorted(rates, reverse=True)


def test_names_and_sources() -> None:
    table = cluster_table()
    assert cluster_names() == [
        *("dgx-1v", "dgx-a100", "dgx-b200", "dgx-b300", "dgx-h100", "dgx-h200", "flat"),
        *("gb200-nvl72", "gb300-nvl72", "madpipe", "rannc", "summit"),
    ]
    assert {source for facts in table.clusters.values() for source in facts.sources} == set(table.sources)
    assert all(facts.summary for facts in table.clusters.values())


PRESET = {"summit-graphpipe": "summit", "rannc-node": "rannc"}


@pytest.mark.parametrize("node", ["summit-graphpipe", "rannc-node", "dgx-1v", "dgx-a100", "dgx-h100"])
def test_published_nodes_are_restated(node: str) -> None:
    facts = json.loads(shared_data("device_presets.json").read_text())
    published: dict[str, Any] = next(entry for entry in facts["nodes"] if entry["name"] == node)
    per_node = published["devices_per_node"]
    cluster = load_cluster(PRESET.get(node, node), 2 * per_node)
    *inner, outer = levels(cluster)
    assert inner[-1][1] == per_node
    assert published["device"].startswith(cluster.devices[0].rpartition("-")[0])
    intra = published["intra_gbs"] if isinstance(published["intra_gbs"], list) else [published["intra_gbs"]]
    assert {rate for _, _, rate, _ in inner} <= set(intra)
    assert outer[3] == published["inter_gbs"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("sumit", {}, "unknown cluster 'sumit'.*did you mean 'summit'"),
        ("summit", {"devices": 0}, "cannot have 0 devices"),
        ("summit", {"devices": -2}, "cannot have -2 devices"),
        ("summit", {"devices": 10**9}, "cannot have 1000000000 devices"),
        ("summit", {"memory": "12"}, "'12' is not an amount of memory"),
        ("summit", {"memory": "0GB"}, "'0GB' is not an amount of memory"),
        ("summit", {"bandwidth": "12GB"}, "'12GB' is not a bandwidth"),
        ("flat", {"device_type": "mystery"}, "memory of device type 'mystery' is not known"),
        ("missing.toml", {}, "there is no file 'missing.toml'"),
    ],
)
def test_what_is_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PipebenchError, match=message):
        load_cluster(name, **{"devices": 4, **arguments})
