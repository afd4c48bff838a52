"""links(context): what messages between processes cost on this machine, as a cluster."""

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import msgspec

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, LinkRequest
from pipebench_torch.installed import require_torch
from pipebench_torch.processes.job import JOB, REPORT, write
from pipebench_torch.processes.launch import run_ranks

SIZES = (1_000, 10_000, 100_000, 1_000_000, 4_000_000, 16_000_000)
LIMIT_S = 180.0


class LinkJob(Value, frozen=True, kw_only=True):
    """What each process is told: bytes of the messages and how often each is sent."""

    backend: str
    device: str
    sizes: tuple[int, ...] = SIZES
    repeats: int = 15
    end_s: float = LIMIT_S


class LinkReport(Value, frozen=True, kw_only=True):
    """Seconds one way, by pair of ranks and size: the median of half a round trip."""

    device: str
    seconds: dict[str, tuple[float, ...]] = {}


def links(context: Context) -> Cluster:
    """A cluster of processes of this machine: every pair is measured, the median pair stands for all. Processes
    that share cards send through the host, over gloo, and have a share of a card's memory.

    Raises PipebenchError: torch is not installed, fewer than two devices, no CUDA device, a process failed.
    """
    require_torch()
    import torch

    request = cast(LinkRequest, context.request)
    if request.devices < 2:
        raise PipebenchError(f"links between {request.devices} devices cannot be measured", "give 2 or more")
    cards = torch.cuda.device_count() if request.device == "cuda" else 0
    if request.device == "cuda" and not cards:
        raise PipebenchError("torch finds no CUDA device", "say --device cpu")
    backend = "nccl" if cards >= request.devices else "gloo"
    job = LinkJob(backend=backend, device=request.device)
    with tempfile.TemporaryDirectory(prefix="pipebench-") as name:
        folder = Path(name)
        write(folder / JOB, job)
        command = [sys.executable, "-m", "pipebench_torch.profiling.link_worker", str(folder)]
        run_ranks(command, request.devices, folder, time.monotonic() + LIMIT_S)
        report = msgspec.msgpack.decode((folder / REPORT.format(0)).read_bytes(), type=LinkReport)
    latency_s, rate = fitted(job.sizes, report.seconds.values())
    sharing = -(-request.devices // max(1, cards))
    through = f"{backend}, {sharing} processes on a card" if cards and backend == "gloo" else backend
    kind = DeviceType(
        name=report.device if cards else request.device,
        memory_bytes=_memory_bytes(request.device) // sharing,
        source=f"measured over {through}",
    )
    level = LinkLevel(name=backend, group=request.devices, latency_s=latency_s, bandwidth_bytes_s=rate)
    return Cluster(
        name=f"measured-{backend}", types=(kind,), devices=(kind.name,) * request.devices, levels=(level,)
    )


def fitted(sizes: Sequence[int], pairs: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Latency (s) and bandwidth (bytes/s) of the median pair: a line through its times, each weighted by 1 / time.

    Relative errors count alike, so that small messages decide the latency and large ones the bandwidth.
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
    slope = max(slope, 1e-13)
    return round(max(0.0, y0 - slope * x0), 9), float(round(1 / slope))


def _memory_bytes(device: str) -> int:
    if device == "cuda":
        import torch

        return int(torch.cuda.get_device_properties(0).total_memory)
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
