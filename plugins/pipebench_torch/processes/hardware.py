"""What the processes of this node run on: device, backend, memory."""

from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Problem
from pipebench_torch.placing.layout import Layout
from pipebench_torch.plugin import ExecutorOptions
from pipebench_torch.processes.nodes import Node


def device_and_backend(device: str, backend: str, processes: int) -> tuple[str, str]:
    """Device and backend of the processes of this node, from those that were asked for, which may be `auto`; a
    CUDA device is looked for only when it may be used.

    Raises PipebenchError for a card that is not there, and for a backend that the devices do not have.
    """
    if device != "cpu":
        import torch

        cards = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if device == "cuda" and not cards:
            raise PipebenchError("device=cuda, and torch finds no CUDA device", "leave it out, or say device=cpu")
        device = "cuda" if cards >= processes or (device == "cuda" and cards) else "cpu"
        if backend == "auto":
            backend = "nccl" if device == "cuda" and cards >= processes else "gloo"
        if backend == "nccl" and (device == "cpu" or cards < processes):
            raise PipebenchError(
                f"nccl needs a card for each of {processes} processes, there are {cards}", "say backend=gloo"
            )
    elif backend == "nccl":
        raise PipebenchError("nccl sends between CUDA devices only", "say backend=gloo")
    return device, "gloo" if backend == "auto" else backend


def memory_limits(problem: Problem, options: ExecutorOptions, layout: Layout, node: Node) -> tuple[int, ...]:
    """Private memory of each process: that of its device, or else an equal share of what this machine has left."""
    share = _available_bytes() // len(node.ranks)
    held = [problem.cluster.type_of(layout.device_of(rank)).memory_bytes for rank in range(layout.world)]
    return tuple(min(share, each) if options.limit_memory else share for each in held)


def _available_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 2**50
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), 2**50)
