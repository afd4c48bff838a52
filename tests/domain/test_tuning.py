"""Constants of a device and a framework: their table, and what they change."""

import pytest

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import InvalidValue, PipebenchError
from pipebench.domain.framework import Framework
from pipebench.domain.tuning import CONSTANTS, Reach, Tuning, usual_constants

FRAMEWORK = Framework(name="one", launch_s=1e-5, checkpoint_s=3e-4, rerun_s=3e-4, skew_s=1e-5, loss_bytes=52)
DEVICE = DeviceType(name="fast", memory_bytes=10**9)
NODE = LinkLevel(name="node", group=8, bandwidth_bytes_s=200e9)
NETWORK = LinkLevel(name="network", group=16, bandwidth_bytes_s=10e9, shared_bandwidth_bytes_s=80e9)


def tuning(**constants: float) -> Tuning:
    return Tuning(device="fast", framework="one", constants=constants)


def test_the_usual_constants_change_nothing() -> None:
    usual = usual_constants(FRAMEWORK)
    assert set(usual) == set(CONSTANTS)
    again = tuning(**usual)
    assert again.reach == Reach()
    assert usual_constants(again.framework_of(FRAMEWORK)) == pytest.approx(usual)
    two = Cluster(name="c", types=(DEVICE,), devices=("fast",) * 16, levels=(NODE, NETWORK))
    assert again.cluster_of(two) == two


def test_each_constant_lands_where_it_belongs() -> None:
    made = tuning(stream_share=0.9, launch_us=20, loss_bytes=60, reduce_overlap=0.5, network_factor=0.75)
    assert made.reach == Reach(stream_share=0.9)
    framework = made.framework_of(FRAMEWORK)
    assert (framework.launch_s, framework.loss_bytes, framework.reduce_overlap) == (2e-5, 60, 0.5)
    assert framework.checkpoint_s == FRAMEWORK.checkpoint_s
    two = Cluster(name="c", types=(DEVICE,), devices=("fast",) * 16, levels=(NODE, NETWORK))
    node, network = made.cluster_of(two).levels
    assert node == NODE
    assert (network.bandwidth_bytes_s, network.shared_bandwidth_bytes_s) == (7.5e9, 60e9)
    one = Cluster(name="c", types=(DEVICE,), devices=("fast",) * 8, levels=(NODE,))
    assert made.cluster_of(one) == one


def test_other_devices_and_frameworks_are_refused() -> None:
    with pytest.raises(PipebenchError, match="not of 'two'"):
        tuning().framework_of(Framework(name="two", launch_s=0))
    slow = DeviceType(name="slow", memory_bytes=1)
    both = Cluster(name="c", types=(DEVICE, slow), devices=("fast", "slow"), levels=(NODE,))
    with pytest.raises(PipebenchError, match="not of 'slow'"):
        tuning().cluster_of(both)


@pytest.mark.parametrize(
    ("name", "value"), [("stream_share", 0.96), ("launch_us", 4.0), ("skew_us", float("nan"))]
)
def test_a_constant_outside_its_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidValue, match=f"{name} is"):
        tuning(**{name: value})


def test_every_default_is_in_its_range() -> None:
    for each in CONSTANTS.values():
        assert each.default is None or each.low <= each.default <= each.high
        assert each.linear or each.low > 0
