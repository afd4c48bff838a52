"""links(context): what messages between processes cost, on this machine or several, as a cluster."""

import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import cast

import msgspec

from pipebench.domain.cluster import Cluster, DeviceType
from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench.hooks.context import Context, LinkRequest
from pipebench_torch.installed import require_torch
from pipebench_torch.plugin import ProfilerOptions
from pipebench_torch.processes.job import JOB, REPORT, write
from pipebench_torch.processes.launch import run_ranks
from pipebench_torch.processes.nodes import node_of
from pipebench_torch.profiling.link_levels import SIZES, LinkReport, levels

LIMIT_S = 300.0


class LinkJob(Value, frozen=True, kw_only=True):
    """What each process is told: bytes of the messages, how often each is sent at most, processes of each node,
    bytes of device memory for each process of this one.
    """

    backend: str
    device: str
    processes: tuple[int, ...]
    memory_bytes: int
    sizes: tuple[int, ...] = SIZES
    repeats: int = 15
    end_s: float = LIMIT_S


def links(context: Context) -> Cluster:
    """A cluster of processes: a level for those of one machine, one for machines. Of each level some pairs are
    measured, and the median one stands for all; where the devices of a machine hold each other up on the way to
    another one, what they send together is the level's shared bandwidth. Processes that share cards send
    through the host, over gloo, and have a share of a card's memory.

    Raises PipebenchError: torch is not installed, fewer than two devices, no CUDA device, a process failed, nodes
    that do not come or measure something else.
    """
    require_torch()
    import torch

    request, options = cast(LinkRequest, context.request), cast(ProfilerOptions, context.options)
    if request.devices < 2:
        raise PipebenchError(f"links between {request.devices} devices cannot be measured", "give 2 or more")
    cards = torch.cuda.device_count() if request.device == "cuda" else 0
    if request.device == "cuda" and not cards:
        raise PipebenchError("torch finds no CUDA device", "say --device cpu")
    node = node_of(options, request.devices)
    here = node.processes[node.rank]
    backend = "nccl" if cards >= here else "gloo"
    sharing = -(-here // max(1, cards))
    job = LinkJob(
        backend=backend,
        device=request.device,
        processes=node.processes,
        memory_bytes=_memory_bytes(request.device) // sharing,
    )
    facts = {
        "--links": str(request.devices),
        "device": f"{request.device} over {backend}",
        "processes of the nodes": str(node.processes),
        "version of torch": version("torch"),
    }
    with tempfile.TemporaryDirectory(prefix="pipebench-") as name:
        folder = Path(name)
        write(folder / JOB, job)
        command = [sys.executable, "-m", "pipebench_torch.profiling.link_worker", str(folder)]
        run_ranks(command, request.devices, folder, time.monotonic() + LIMIT_S, node, facts)
        report = msgspec.msgpack.decode((folder / REPORT.format(0)).read_bytes(), type=LinkReport)
    through = f"{backend}, {sharing} processes on a card" if cards and backend == "gloo" else backend
    day = datetime.now(UTC).date().isoformat()
    names = report.names if cards else (request.device,) * request.devices
    kinds = tuple(
        DeviceType(
            name=kind,
            memory_bytes=min(held for name, held in zip(names, report.memory_bytes, strict=True) if name == kind),
            source=f"measured over {through}, torch {version('torch')}, {day}",
        )
        for kind in dict.fromkeys(names)
    )
    found = tuple(levels(report, job.sizes, node.processes, backend))
    return Cluster(name=f"measured-{backend}", types=kinds, devices=names, levels=found)


def _memory_bytes(device: str) -> int:
    if device == "cuda":
        import torch

        return int(torch.cuda.get_device_properties(0).total_memory)
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
