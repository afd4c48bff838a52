"""The link levels of a cluster from the measured times of messages."""

from collections.abc import Iterable, Iterator, Sequence

from pipebench.domain.cluster import LinkLevel
from pipebench.domain.value import Value

SIZES = (1_000, 10_000, 100_000, 1_000_000, 4_000_000, 16_000_000)
ALONE = 0.95
"""A share of what single links can do together, from which on they do not hold each other up."""


class LinkReport(Value, frozen=True, kw_only=True):
    """Seconds one way, of each pair by size: the median of half a round trip. within, between: pairs of one node
    and of two. together: bytes/s that the devices of a node send to another at once (0: not measured). names,
    memory_bytes: of the device of each rank. source: how it was measured, and when.
    """

    within: tuple[tuple[float, ...], ...] = ()
    between: tuple[tuple[float, ...], ...] = ()
    together: float = 0.0
    names: tuple[str, ...] = ()
    memory_bytes: tuple[int, ...] = ()
    source: str = ""


def levels(
    report: LinkReport, sizes: Sequence[int], processes: Sequence[int], backend: str
) -> Iterator[LinkLevel]:
    """From the innermost: a node with several processes, and several nodes. processes: of each node."""
    world, many = sum(processes), len(processes) > 1
    if report.within:
        latency_s, rate = fitted(sizes, report.within)
        name, group = ("node", processes[0]) if many else (backend, world)
        yield LinkLevel(name=name, group=group, latency_s=latency_s, bandwidth_bytes_s=rate)
    if report.between:
        latency_s, rate = fitted(sizes, report.between)
        abreast = min(processes[:2])
        shared = report.together if 0 < report.together < ALONE * abreast * rate else None
        yield LinkLevel(
            name="nodes",
            group=world,
            latency_s=latency_s,
            bandwidth_bytes_s=rate,
            shared_bandwidth_bytes_s=None if shared is None else float(round(shared)),
        )


def fitted(sizes: Sequence[int], pairs: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Latency (s) and bandwidth (bytes/s) of the median pair: a line through its times, each weighted by 1 / time.

    Relative errors count alike, so that small messages decide the latency and large ones the bandwidth. Where
    times do not lie on a line, the latency is at least half of the shortest time, which is mostly latency.
    """
    rows = sorted(pairs, key=sum)
    times = rows[len(rows) // 2]
    weights = [1 / time**2 for time in times]
    total = sum(weights)
    x0 = sum(w * size for w, size in zip(weights, sizes, strict=True)) / total
    y0 = sum(w * time for w, time in zip(weights, times, strict=True)) / total
    slope = sum(w * (x - x0) * (y - y0) for w, x, y in zip(weights, sizes, times, strict=True)) / sum(
        w * (x - x0) ** 2 for w, x in zip(weights, sizes, strict=True)
    )
    latency, least = y0 - slope * x0, min(times) / 2
    if latency < least:
        latency = least
        slope = sum(w * x * (y - latency) for w, x, y in zip(weights, sizes, times, strict=True)) / sum(
            w * x**2 for w, x in zip(weights, sizes, strict=True)
        )
    return round(latency, 9), float(round(1 / max(slope, 1e-13)))
