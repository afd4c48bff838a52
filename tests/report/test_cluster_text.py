"""What a measured cluster is said to be."""

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.report.text.profiles import cluster_lines

WIRE = LinkLevel(name="nodes", group=4, latency_s=5e-5, bandwidth_bytes_s=2e9, shared_bandwidth_bytes_s=3e9)
NODE = LinkLevel(name="node", group=2, latency_s=1e-5, bandwidth_bytes_s=8e9)


def said(*levels: LinkLevel) -> list[str]:
    kind = DeviceType(name="cpu", memory_bytes=1)
    return list(
        cluster_lines(Cluster(name="c", types=(kind,), devices=("cpu",) * levels[-1].group, levels=levels))
    )


def test_one_level_is_the_cluster() -> None:
    assert said(NODE) == ["c: latency 10.0 us, bandwidth 8.00 GB/s"]


def test_levels_say_whom_they_join_and_what_is_sent_together() -> None:
    inner, outer = said(NODE, WIRE)
    assert inner == "c, node: 2 of 4 devices: latency 10.0 us, bandwidth 8.00 GB/s"
    assert outer == (
        "c, nodes: 4 of 4 devices: latency 50.0 us, bandwidth 2.00 GB/s, 3.00 GB/s by all of a node together"
    )
