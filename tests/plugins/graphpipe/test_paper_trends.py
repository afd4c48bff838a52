"""What GraphPipe's paper shows, by simulation: branches pay, sequential models lose nothing."""

import pytest

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.problem import Problem, Regime
from pipebench.formats.profiles.shipped import load_profile
from tests.builders import cluster, dag_problem
from tests.plugins.running import services, time_ns


def gain(problem: Problem, over: str) -> float:
    """Simulated throughput of the paper's graphpipe over that of another planner."""
    return time_ns(problem, services().plan(over, problem).plan) / time_ns(
        problem, services().plan("graphpipe[variant=paper]", problem).plan
    )


def transformer(name: str, devices: int) -> Problem:
    profile = load_profile(name)
    kind = DeviceType(name=profile.device_types[0], memory_bytes=16 * 10**9)
    link = LinkLevel(name="flat", group=devices, latency_s=15e-6, bandwidth_bytes_s=12.5e9)
    made = Cluster(name="flat", types=(kind,), devices=(kind.name,) * devices, levels=(link,))
    regime = Regime(mode="sync", precision=profile.precision, optimizer="adam")
    return Problem(profile=profile, cluster=made, mini_batch=16 * devices, regime=regime)


@pytest.mark.parametrize("devices", [8, 16, 32])
def test_four_branches_are_faster_than_a_sequential_pipeline(devices: int) -> None:
    problem = transformer("mmt", devices)
    assert gain(problem, "pipedream[replicas=split]") > 1.1
    # Most of it is the schedule: the sequential partition without its order edges comes close.
    assert gain(problem, "pipedream[execution=graph,replicas=split]") == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("devices", [4, 8, 16, 32])
def test_on_the_sequential_transformer_nothing_is_lost(devices: int) -> None:
    assert gain(transformer("transformer", devices), "pipedream[replicas=split]") == pytest.approx(1, abs=0.01)


def test_the_gain_grows_with_the_number_of_branches() -> None:
    """CANDLE-Uno with 2 to 16 branches of four layers on 8 devices (Figure 7, left)."""
    gains = []
    for count in (2, 4, 8, 16):
        join = 4 * count
        tensors = [(o, (join,) if o % 4 == 3 else (o + 1,), 16384) for o in range(join)]
        problem = dag_problem(
            [6 * 10**5] * join + [10**4] * 2,
            [12 * 10**5] * join + [10**4] * 2,
            [*tensors, (join, (join + 1,), 16384)],
            cluster(8, 16 * 10**9, bandwidth=12.5e9, latency_s=15e-6),
            weights=[67 * 10**6] * join + [0] * 2,
            saved=[32768] * (join + 2),
            mini_batch=16,
        )
        gains.append(gain(problem, "pipedream[replicas=split]"))
    assert gains == sorted(gains)
    assert gains[0] > 1.1
    assert gains[-1] > 1.3
