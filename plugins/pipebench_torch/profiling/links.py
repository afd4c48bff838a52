"""links(context): what messages between processes cost, on this machine or several, as a cluster."""

import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import cast

from pipebench.domain.cluster import Cluster, DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, LinkRequest
from pipebench_torch.installed import require_torch
from pipebench_torch.plugin import ProfilerOptions
from pipebench_torch.processes.hardware import device_and_backend
from pipebench_torch.processes.job import JOB, read_report, write
from pipebench_torch.processes.launch import run_ranks
from pipebench_torch.processes.nodes import node_of
from pipebench_torch.profiling.link_levels import SIZES, LinkReport, levels


class LinkJob(Value, frozen=True, kw_only=True):
    """What each process of a node is told: bytes of the messages, processes of each node; how many share a device
    of this one, and the bytes of its memory that each has.
    """

    backend: str
    device: str
    processes: tuple[int, ...]
    sharing: int
    memory_bytes: int
    end_s: float
    sizes: tuple[int, ...] = SIZES


def links(context: Context) -> Cluster:
    """A cluster of processes: a level for those of one machine, one for machines. Of each level some pairs are
    measured, and the median one stands for all; where the devices of a machine hold each other up on the way to
    another one, what they send together is the level's shared bandwidth (of the first two machines; not where one
    of them has one device). Processes that share cards send through the host, over gloo, and have a share of a
    card's memory.

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
    )
    facts = {
        "--links": str(request.devices),
        "device": f"{device} over {backend}",
        "processes of the nodes": str(node.processes),
        "rendezvous": options.rendezvous,
        "version of torch": version("torch"),
    }
    with tempfile.TemporaryDirectory(prefix="pipebench-") as name:
        folder = Path(name)
        write(folder / JOB, job)
        command = [sys.executable, "-m", "pipebench_torch.profiling.link_worker", str(folder)]
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
    found = tuple(levels(report, job.sizes, node.processes, backend))
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
