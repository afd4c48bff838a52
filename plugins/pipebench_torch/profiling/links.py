"""links(context): what messages between processes cost, on this machine or several, as levels of a cluster."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import cast

from pipebench.domain.cluster import Cluster, DeviceType, LinkLevel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, LinkRequest
from pipebench.system.scratch import scratch_folder
from pipebench_torch.plugin import ProfilerOptions
from pipebench_torch.processes.cores import cores_for
from pipebench_torch.processes.job import JOB, read_report, write
from pipebench_torch.processes.launch import run_ranks
from pipebench_torch.processes.nodes import device_and_backend, node_of, require_torch

SIZES = (1_000, 10_000, 100_000, 1_000_000, 4_000_000, 16_000_000)
ALONE = 0.95
"""A share of what single links can do together, from which on they do not hold each other up."""


class LinkReport(Value, frozen=True, kw_only=True):
    """Seconds one way of each pair, by size: the median of half a round trip.

    within: pairs of one node.
    between: pairs of two nodes.
    together: bytes/s that the devices of a node send to another node at once (0: not measured).
    names, memory_bytes: of the device of each rank.
    source: how and when it was measured.
    """

    within: tuple[tuple[float, ...], ...] = ()
    between: tuple[tuple[float, ...], ...] = ()
    together: float = 0.0
    names: tuple[str, ...] = ()
    memory_bytes: tuple[int, ...] = ()
    source: str = ""


def link_levels(
    report: LinkReport, sizes: Sequence[int], processes: Sequence[int], backend: str
) -> Iterator[LinkLevel]:
    """The link levels, innermost first: a node with several processes, and several nodes.

    processes: of each node.
    """
    world, many = sum(processes), len(processes) > 1
    if report.within:
        latency_s, rate = fit_link(sizes, report.within)
        name, group = ("node", processes[0]) if many else (backend, world)
        yield LinkLevel(name=name, group=group, latency_s=latency_s, bandwidth_bytes_s=rate)
    if report.between:
        latency_s, rate = fit_link(sizes, report.between)
        abreast = min(processes[:2])
        shared = report.together if 0 < report.together < ALONE * abreast * rate else None
        yield LinkLevel(
            name="nodes",
            group=world,
            latency_s=latency_s,
            bandwidth_bytes_s=rate,
            shared_bandwidth_bytes_s=None if shared is None else float(round(shared)),
        )


def fit_link(sizes: Sequence[int], pairs: Iterable[Sequence[float]]) -> tuple[float, float]:
    """Latency (s) and bandwidth (bytes/s) of the median pair: a line through its times, each weighted by 1 / time.

    Relative errors count alike, so that small messages decide the latency and large ones the bandwidth. Where the
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


class LinkJob(Value, frozen=True, kw_only=True):
    """What each process of a node is told.

    processes: of each node.
    sharing: how many processes share a device of this node.
    memory_bytes: each process's share of the device's memory.
    sizes: bytes of the messages.
    cores: of each process of this node, as in a run; empty: any.
    """

    backend: str
    device: str
    processes: tuple[int, ...]
    sharing: int
    memory_bytes: int
    end_s: float
    sizes: tuple[int, ...] = SIZES
    cores: tuple[tuple[int, ...], ...] = ()


def links(context: Context) -> Cluster:
    """A cluster of processes: one link level for processes of one machine, one for machines.

    Some pairs of each level are measured, and the median pair stands for all. Where the devices of a machine slow
    each other down on the way to another machine, the bytes that they send together are the level's shared
    bandwidth. It is measured on the first two machines, and not where one of them has one device. Processes that
    share cards send through the host, over gloo, and have a share of a card's memory.

    Raises PipebenchError: torch is not installed, fewer than two devices, no CUDA device, a process failed, nodes
    that do not come or measure something else.
    """
    require_torch()
    request, options = cast(LinkRequest, context.request), cast(ProfilerOptions, context.options)
    if request.devices < 2:
        raise PipebenchError(f"links between {request.devices} devices cannot be measured", "give 2 or more")
    node = node_of(options, request.devices)
    here = node.processes[node.rank]
    device, backend = device_and_backend(request.device, options.backend, here)
    sharing = -(-here // _devices(device))
    job = LinkJob(
        backend=backend,
        device=device,
        processes=node.processes,
        sharing=sharing,
        memory_bytes=_memory_bytes(device) // sharing,
        end_s=options.timeout_s,
        cores=cores_for(here, 1) if device == "cpu" else (),
    )
    facts = {
        "--links": str(request.devices),
        "device": f"{device} over {backend}",
        "processes of the nodes": str(node.processes),
        "rendezvous": options.rendezvous,
        "version of torch": version("torch"),
    }
    with scratch_folder() as folder:
        write(folder / JOB, job)
        command = [sys.executable, "-P", "-m", "pipebench_torch.profiling.link_worker", str(folder)]
        run_ranks(command, request.devices, folder, time.monotonic() + options.timeout_s, node, facts)
        report = read_report(folder, 0, LinkReport)
    names = report.names if device == "cuda" else (device,) * request.devices
    kinds = tuple(
        DeviceType(
            name=kind,
            memory_bytes=min(held for name, held in zip(names, report.memory_bytes, strict=True) if name == kind),
            source=report.source,
        )
        for kind in dict.fromkeys(names)
    )
    found = tuple(link_levels(report, job.sizes, node.processes, backend))
    return Cluster(name=f"measured-{backend}", types=kinds, devices=names, levels=found)


def _devices(device: str) -> int:
    """Of this machine."""
    if device != "cuda":
        return 1
    import torch

    return int(torch.cuda.device_count())


def _memory_bytes(device: str) -> int:
    if device == "cuda":
        import torch

        return int(torch.cuda.get_device_properties(0).total_memory)
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
