"""A user's cluster file: what it may say, and every way in which it may be wrong."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipebench.domain.errors import PipebenchError
from pipebench.formats.clusters import ClusterFacts, load_cluster
from pipebench.formats.documents import write_document
from pipebench.formats.typed_text import parse_toml

GOOD = """
name = "lab"
device = "home-made"
link_mode = "half"

[devices.home-made]
memory_gb = 12
peak_tflops = { fp32 = 10 }
memory_bandwidth_gb_s = 500

[[levels]]
name = "box"
group = 2
latency_us = 3
bandwidth_gb_s = 20.5

[[levels]]
name = "network"
bandwidth_gb_s = 1
shared_bandwidth_gb_s = 1.5
"""


def write(folder: Path, text: str) -> str:
    path = folder / "lab.toml"
    path.write_text(text)
    return str(path)


def test_a_file_says_what_a_table_says(tmp_path: Path) -> None:
    cluster = load_cluster(write(tmp_path, GOOD), 6)
    assert (cluster.name, cluster.link_mode, cluster.devices) == ("lab", "half", ("home-made",) * 6)
    assert cluster.memory_bytes == 12 * 10**9
    box, network = cluster.levels
    assert (box.group, box.latency_s, box.bandwidth_bytes_s) == (2, 3e-6, 20.5e9)
    assert (network.group, network.shared_bandwidth_bytes_s) == (6, 1.5e9)


def test_the_name_is_that_of_the_file_where_none_is_said(tmp_path: Path) -> None:
    assert load_cluster(write(tmp_path, GOOD.replace('name = "lab"', "", 1)), 2).name == "lab"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("link_mode", "link_mod", r"unknown key 'link_mod' \(did you mean 'link_mode'"),
        ("memory_gb", "memory_gib", r"unknown key 'devices\[...\].memory_gib' \(did you mean 'memory_gb'"),
        ("latency_us", "latency", r"unknown key 'levels\[0\].latency' \(did you mean 'latency_us'"),
        ('"half"', '"triple"', "link_mode: Invalid enum value 'triple'"),
        ("group = 2", 'group = "two"', r"levels\[0\].group: Expected `int \| null`, got `str`"),
        ("group = 2", "group = 0", r"levels\[0\]: group is 0"),
        ("group = 2", "", "only the last link level may leave out its group"),
        (
            'name = "network"',
            'name = "rack"\ngroup = 3\nbandwidth_gb_s = 9\n[[levels]]\nname = "network"',
            r"group 3 of 'rack' is no multiple of group 2 of 'box'",
        ),
        ("20.5", "nan", r"levels\[0\]: bandwidth_gb_s is nan"),
        ("20.5", "inf", r"levels\[0\]: bandwidth_gb_s is inf"),
        ("20.5", "-1", r"levels\[0\]: bandwidth_gb_s is -1"),
        ("1.5", "0", r"levels\[1\]: shared_bandwidth_gb_s is 0"),
        ("latency_us = 3", "latency_us = -3", "latency_us is -3"),
        ("memory_gb = 12", "memory_gb = -12", "memory_gb is -12"),
        ("memory_gb = 12", "", "missing required field `memory_gb`"),
        ("fp32 = 10", "fp64 = 10", "Invalid enum value 'fp64'"),
        ("fp32 = 10", "fp32 = nan", "peak_tflops.fp32 is nan"),
        (
            'device = "home-made"',
            'device = "home-mad"',
            "unknown device type 'home-mad'.*did you mean 'home-made'",
        ),
        ("[[levels]]", "[[levels]", "not valid TOML"),
        (GOOD, "", "missing required field `levels`"),
        (GOOD, "levels = []", "at least one link level"),
        (GOOD, "not toml", "not valid TOML"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(PipebenchError, match=message) as caught:
        load_cluster(path, 2)
    assert "lab" in caught.value.message


def test_groups_ascend(tmp_path: Path) -> None:
    wrong = GOOD.replace('name = "network"', 'name = "network"\ngroup = 2')
    with pytest.raises(PipebenchError, match="from the smallest to the largest"):
        load_cluster(write(tmp_path, wrong), 2)


def test_more_devices_than_the_links_join(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace('name = "network"', 'name = "network"\ngroup = 4'))
    assert load_cluster(path, 4).size == 4
    with pytest.raises(PipebenchError, match="joins at most 4 devices, not 5"):
        load_cluster(path, 5)


def test_a_cluster_document_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "saved.json"
    write_document(path, "cluster", load_cluster("summit", 8))
    assert load_cluster(str(path), 4, memory="8GB") == load_cluster("summit", 4, memory="8GB")
    with pytest.raises(PipebenchError, match="has 8 devices, not 9"):
        load_cluster(str(path), 9)


@given(st.integers(0, len(GOOD)))
def test_a_truncated_file_is_a_value_or_an_error(length: int) -> None:
    try:
        assert parse_toml(GOOD[:length].encode(), ClusterFacts, "cut.toml").levels
    except PipebenchError:
        return
