"""The device table against the facts that it restates."""

import json

import pytest
from msgspec.structs import replace

from pipebench.domain.errors import PipebenchError
from pipebench.formats.clusters import load_cluster
from pipebench.formats.devices import (
    device_names,
    device_of_card,
    device_table,
    load_device,
    process_memory_bytes,
    with_process_memory,
)
from tests.shared_data import shared_data

LINKS_PER_DEVICE = {"P100": 4, "V100": 6, "A100": 12, "H100": 18, "B200": 18}


def test_every_published_figure_is_restated() -> None:
    facts = json.loads(shared_data("device_presets.json").read_text())
    table = device_table().devices
    assert {device["name"] for device in facts["devices"]} <= set(table)
    for device in facts["devices"]:
        ours = table[device["name"]]
        published = {name: rate for name, rate in device["peak_tflops_dense"].items() if rate is not None}
        assert ours.peak_tflops == published
        assert ours.memory_gb == device["memory_gb"]
        assert ours.memory_bandwidth_gb_s == device["memory_bandwidth_gbs"]
        assert ours.nvlink_gb_s == device["nvlink_gbs_per_direction"]
        assert ours.pcie_gb_s == device["pcie_gbs_per_direction"]


def test_effective_rates_are_those_of_nccl_or_measured() -> None:
    facts = json.loads(shared_data("device_presets.json").read_text())
    effective, measured = facts["effective"], facts["measured"]
    for name, ours in device_table().devices.items():
        family = name.partition("-")[0]
        if family == "H200":
            assert ours.effective_nvlink_gb_s == measured["h200_nvlink_unidirectional_gbs"]
            assert ours.effective_pcie_gb_s == measured["pcie5_h2d_gbs"]
        elif family in LINKS_PER_DEVICE and ours.nvlink_gb_s:
            links = effective["links_per_gpu"][family]
            assert links == LINKS_PER_DEVICE[family]
            assert ours.effective_nvlink_gb_s == pytest.approx(links * effective["nvlink_per_link_gbs"][family])
        if ours.pcie_gb_s == 15.75:
            assert ours.effective_pcie_gb_s == effective["pcie_gen3_x16_gbs"]


def test_devices_of_a_rack_have_their_share_of_its_figures() -> None:
    """NVL72 by its vendor: NVLink of 130 TB/s in both directions, memory of 576 TB/s, half of 360 PFLOPS."""
    for name in ("GB200-186GB", "GB300-279GB"):
        ours = device_table().devices[name]
        assert 72 * 2 * (ours.nvlink_gb_s or 0) == pytest.approx(130e3, rel=0.01)
        assert 72 * (ours.memory_bandwidth_gb_s or 0) == 576e3
        assert 72 * ours.peak_tflops["bf16"] == 180e3
    assert 72 * device_table().devices["GB200-186GB"].memory_gb == pytest.approx(13.4e3, rel=0.01)
    assert 72 * device_table().devices["GB300-279GB"].memory_gb == pytest.approx(20.1e3, rel=0.01)


def test_effective_rates_are_below_nominal_ones() -> None:
    for ours in device_table().devices.values():
        for nominal, effective in (
            (ours.nvlink_gb_s, ours.effective_nvlink_gb_s),
            (ours.pcie_gb_s, ours.effective_pcie_gb_s),
        ):
            assert effective is None or (nominal is not None and effective < nominal)


def test_every_source_is_named() -> None:
    table = device_table()
    used = {source for device in table.devices.values() for source in device.sources}
    assert used == set(table.sources)
    assert all(device.sources for device in table.devices.values())


def test_a_process_sees_what_torch_prints_and_not_what_the_vendor_does() -> None:
    """A gigabyte of the vendor is 2^30 bytes, less what the driver keeps and, without HBM, what corrects errors;
    of a device with another memory all.
    """
    for name, facts in device_table().devices.items():
        device = load_device(name)
        seen = process_memory_bytes(device)
        if facts.process_gib is None:
            assert seen == device.memory_bytes
        else:
            assert 0.92 * facts.memory_gb * 2**30 < seen < facts.memory_gb * 2**30
        other = replace(device, memory_bytes=device.memory_bytes - 1)
        assert process_memory_bytes(other) == other.memory_bytes
    cluster = load_cluster("dgx-h100", 16)
    assert with_process_memory(cluster).memory_bytes == round(79.1 * 2**30)


def test_units() -> None:
    device = load_device("V100-SXM2-16GB")
    assert device.memory_bytes == 16 * 10**9
    assert device.peak_flops == {"fp32": 15.7e12, "fp16": 125e12}
    assert device.memory_bandwidth_bytes_s == 900e9
    assert device.peer_bandwidth_bytes_s == 120e9


def test_devices_without_nvlink_talk_over_pcie() -> None:
    assert load_device("GTX-1080Ti-11GB").peer_bandwidth_bytes_s == 12e9


def test_unknown_device() -> None:
    assert "V100-SXM2-16GB" in device_names()
    with pytest.raises(PipebenchError, match="did you mean 'V100-SXM2-16GB'"):
        load_device("V100-SXM2-16G")


def test_cards_have_one_device_each() -> None:
    named = [card for ours in device_table().devices.values() for card in ours.cards]
    assert len(set(named)) == len(named)
    assert device_of_card("NVIDIA H200") == "H200-SXM5-141GB"
    assert device_of_card("NVIDIA H100 80GB HBM3") == "H100-SXM5-80GB"
    assert device_of_card("a card that nobody lists") == "a card that nobody lists"
