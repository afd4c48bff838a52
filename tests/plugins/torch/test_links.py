"""What messages between processes cost: the line through their times, and the cluster that is made of it."""

import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the torch extra")

import torch

from pipebench.domain.errors import PipebenchError
from pipebench.hooks.context import Context, LinkRequest
from pipebench_torch.machine import Machine
from pipebench_torch.plugin import ProfilerOptions
from pipebench_torch.processes.launch import RanksFailed
from pipebench_torch.profiling import links as link_measurement
from pipebench_torch.profiling.links import SIZES, LinkReport, fit_link, link_levels, links
from pipebench_torch.profiling.wire import MOST_PAIRS, Pair, Wire, pairs_abreast, pairs_between, pairs_within

WORKER, DIES = (Path(__file__).with_name(name) for name in ("as_nccl.py", "dying_link.py"))


def times(latency_s: float, bytes_s: float) -> list[float]:
    return [latency_s + size / bytes_s for size in SIZES]


def test_times_on_a_line_give_it_back() -> None:
    latency, rate = fit_link(SIZES, [times(50e-6, 2e9)])
    assert latency == pytest.approx(50e-6, rel=1e-6)
    assert rate == pytest.approx(2e9, rel=1e-6)


def test_the_median_pair_stands_for_all() -> None:
    slow, middle, fast = times(1e-3, 1e8), times(2e-5, 3e9), times(1e-6, 9e10)
    assert fit_link(SIZES, [slow, fast, middle])[1] == pytest.approx(3e9, rel=1e-6)


def test_latency_is_not_negative_and_small_messages_decide_it() -> None:
    late = [time * (1.2 if size > 10**6 else 1.0) for time, size in zip(times(0.0, 1e9), SIZES, strict=True)]
    assert 0.0 < fit_link(SIZES, [late])[0] < 1e-6
    slow_large = [
        time + (5e-3 if size > 10**7 else 0.0) for time, size in zip(times(1e-4, 1e9), SIZES, strict=True)
    ]
    assert fit_link(SIZES, [slow_large])[0] == pytest.approx(1e-4, rel=0.2)


def test_pairs_inside_nodes_between_them_and_all_at_once() -> None:
    assert pairs_within((2, 2, 1)) == [(0, 1), (2, 3)]
    assert set(pairs_between((2, 2, 1))) == {(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 4), (3, 4)}
    assert pairs_abreast((2, 3)) == [(0, 2), (1, 3)]
    assert (pairs_within((3,)), pairs_between((3,)), pairs_abreast((3,))) == ([(0, 1), (1, 2), (0, 2)], [], [])
    assert pairs_abreast((1, 1)) == []


@pytest.mark.parametrize(
    "processes", [(8, 8), (8, 8, 8), (4, 4, 4), (3, 5), (1, 1, 1, 1, 1), (2,) * 16, (8, 8, 2)]
)
def test_no_node_and_no_device_is_left_out(processes: tuple[int, ...]) -> None:
    """Not of many: each pair of a few nodes, and as many devices of each node as pairs were to be had."""
    node = [number for number, count in enumerate(processes) for _ in range(count)]
    between, within = pairs_between(processes), pairs_within(processes)
    assert len(between) == len(set(between)) <= max(MOST_PAIRS, len(processes))
    assert all(node[a] < node[b] for a, b in between)
    assert all(a < b and node[a] == node[b] for a, b in within)
    assert {node[rank] for pair in between for rank in pair} == set(node)
    if len(processes) <= 4:
        assert len({(node[a], node[b]) for a, b in between}) == len(processes) * (len(processes) - 1) // 2
    for number, count in enumerate(processes):
        for end in (0, 1):
            seen = [pair[end] for pair in between if node[pair[end]] == number]
            assert len(set(seen)) >= min(count, len(seen) // 2)


def test_a_line_that_does_not_fit_leaves_a_latency() -> None:
    """A wire that lets small messages through at once, and one that was held up by chance."""
    burst = [110e-6, 112e-6, 1973e-6, 23667e-6, 90e-3, 338e-3]
    latency, rate = fit_link(SIZES, [burst])
    assert 55e-6 <= latency <= 110e-6
    assert 4e7 < rate < 1.2e8


@pytest.mark.parametrize(("together", "shared"), [(2.1e9, 2.1e9), (3.9e9, None), (0.0, None)])
def test_a_level_for_nodes_and_one_for_the_way_between_them(together: float, shared: float | None) -> None:
    report = LinkReport(
        within=(tuple(times(5e-6, 9e9)),), between=(tuple(times(40e-6, 2e9)),) * 3, together=together
    )
    inner, outer = link_levels(report, SIZES, (2, 2), "gloo")
    assert (inner.name, inner.group, inner.bandwidth_bytes_s) == ("node", 2, pytest.approx(9e9))
    assert (outer.name, outer.group, outer.bandwidth_bytes_s) == ("nodes", 4, pytest.approx(2e9))
    assert (outer.latency_s, outer.shared_bandwidth_bytes_s) == (pytest.approx(40e-6), shared)


def test_processes_of_this_machine() -> None:
    cluster = links(Context(options=ProfilerOptions(), request=LinkRequest(devices=2, device="cpu")))
    (level,) = cluster.levels
    assert (cluster.size, level.group, level.name) == (2, 2, "gloo")
    assert 1e-6 < level.latency_s < 0.1
    assert 1e6 < level.bandwidth_bytes_s < 1e12
    (kind,) = cluster.types
    assert kind.name == "cpu"
    assert kind.source.startswith(f"measured over gloo, torch {version('torch')}, 20")


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("cards", "backend", "source", "memory"),
    [(1, "gloo", "measured over gloo, 2 processes on a card", 500), (2, "nccl", "measured over nccl", 1000)],
)
def test_processes_on_cards_of_their_own_and_on_one(
    cards: int, backend: str, source: str, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = link_measurement.run_ranks

    def other(command: list[str], *rest: object) -> None:
        start([sys.executable, str(WORKER), command[-1], "links"], *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(link_measurement, "run_ranks", other)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(total_memory=1000))
    cluster = links(Context(options=ProfilerOptions(), request=LinkRequest(devices=2, device="cuda")))
    (kind,) = cluster.types
    assert (kind.name, kind.memory_bytes) == ("a made card", memory)
    assert kind.source.startswith(f"{source}, torch ")
    assert cluster.levels[0].name == backend
    assert cluster.levels[0].bandwidth_bytes_s > 1e6


class MadeWire(Wire):
    """Rank 1 of two pairs, 0 with 2 and 1 with 3, whose streams take these seconds."""

    def __init__(self, round_trip_s: float, streams_s: list[tuple[float, float]]) -> None:
        super().__init__(SIZES, 1, Machine(), SimpleNamespace(say=lambda doing: None))  # type: ignore[arg-type]
        self.round_trip_s, self.streams_s, self.counts = round_trip_s, streams_s, list[int]()

    def gather(self, own: Any, whom: str) -> list[Any]:
        assert whom == "2 pairs that send at once"
        first, second = self.streams_s[len(self.counts) - 1] if self.counts else (own, own)
        return [first, second, 9e9, 9e9]  # what the receiving ends say does not count

    def _round_trip(self, buffer: Any, pair: Pair) -> float:
        assert (pair, len(buffer) * 4) == ((1, 3), SIZES[-1])
        return self.round_trip_s

    def _stream(self, pair: Pair, size: int, count: int) -> float:
        assert (pair, size) == ((1, 3), SIZES[-1])
        self.counts.append(count)
        return 0.0


def test_what_is_sent_at_once_takes_as_long_as_the_slowest() -> None:
    """Two flows of which one takes the whole wire first do not make it faster."""
    wire = MadeWire(0.02, [(0.5, 1.0), (9e-3, 2.0), (4.0, 0.1)])
    assert wire.abreast([(0, 2), (1, 3)]) == pytest.approx(2 * 30 * SIZES[-1] / 2.0)
    assert wire.counts == [30] * 3  # of 10 ms each, 0.3 s
    slow = MadeWire(7.0, [(14.0, 13.0)])
    assert slow.abreast([(0, 2), (1, 3)]) == pytest.approx(2 * 2 * SIZES[-1] / 14.0)
    assert slow.counts == [2]
    assert MadeWire(1.0, []).abreast([]) == 0.0


def test_a_process_that_dies_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the ones that were being measured when they lost it."""
    start = link_measurement.run_ranks

    def other(command: list[str], *rest: object) -> None:
        start([sys.executable, str(DIES), *command[1:]], *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(link_measurement, "run_ranks", other)
    with pytest.raises(RanksFailed, match=r"rank 2 was killed by SIGKILL .* while waiting for ranks 0 and 1"):
        links(Context(options=ProfilerOptions(timeout_s=60.0), request=LinkRequest(devices=3, device="cpu")))


def test_what_cannot_be_measured() -> None:
    for request, reason in (
        (LinkRequest(devices=1, device="cpu"), "links between 1 devices cannot be measured"),
        (LinkRequest(devices=2, device="cuda"), "torch finds no CUDA device"),
    ):
        if request.device == "cuda" and torch.cuda.device_count():
            continue
        with pytest.raises(PipebenchError, match=reason):
            links(Context(options=ProfilerOptions(), request=request))
