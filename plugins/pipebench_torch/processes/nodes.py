"""The machines of a run: how many processes each has, where they meet, and on which hardware."""

import importlib.util
from ipaddress import ip_address
from pathlib import Path

from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Problem
from pipebench.domain.value import Value
from pipebench_torch.placing.layout import Layout
from pipebench_torch.plugin import ExecutorOptions, LaunchOptions


def require_torch() -> None:
    """Raises PipebenchError with the remedy when torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        raise PipebenchError("torch is not installed", "pip install 'pipebench[torch]'")


HERE = "127.0.0.1"


class RunNode(Value, frozen=True, kw_only=True):
    """One machine among those of a run, as torchrun counts them.

    processes: of each node; their ranks follow one another, node after node. host, port: of the rendezvous, which
    node 0 keeps (port 0: a free one).
    """

    processes: tuple[int, ...]
    rank: int = 0
    host: str = HERE
    port: int = 0

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return len(self.processes)

    @property
    def ranks(self) -> range:
        """The ranks of this node."""
        first = sum(self.processes[: self.rank])
        return range(first, first + self.processes[self.rank])

    @property
    def where(self) -> str:
        """The rendezvous as HOST:PORT."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def local(self) -> bool:
        """Whether all nodes are this machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def node_of(options: LaunchOptions, world: int) -> RunNode:
    """This node of a run of `world` processes.

    Raises PipebenchError for a rendezvous that is not HOST:PORT and for nodes that would have no process.
    """
    host, colon, port = options.rendezvous.rpartition(":")
    if options.rendezvous and not (colon and host and port.isdigit() and int(port) < 65536):
        raise PipebenchError(f"rendezvous {options.rendezvous!r} is not HOST:PORT", "such as 10.0.0.1:29500")
    if options.nnodes > 1 and not int(port or 0):
        raise PipebenchError(
            f"{options.nnodes} nodes need a rendezvous that all of them know",
            "give the host of node 0 and a free port of it: rendezvous=HOST:PORT",
        )
    each = options.processes_per_node or -(-world // options.nnodes)
    processes = tuple(max(0, min(each, world - node * each)) for node in range(options.nnodes))
    if sum(processes) < world:
        raise PipebenchError(
            f"{world} processes are wanted, {options.nnodes} nodes of {each} are {sum(processes)}",
            "more nnodes, or more processes_per_node",
        )
    if not all(processes):
        raise PipebenchError(
            f"{world} processes, {each} a node, leave node {processes.index(0)} without one",
            "fewer nnodes, or fewer processes_per_node",
        )
    host = host.removeprefix("[").removesuffix("]")  # of an IPv6 address
    return RunNode(processes=processes, rank=options.node_rank, host=host or HERE, port=int(port or 0))


def device_and_backend(device: str, backend: str, processes: int) -> tuple[str, str]:
    """The device and backend of the processes of this node; the requested ones may be `auto`.

    A CUDA device is looked for only when it may be used.

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


def memory_limits(problem: Problem, options: ExecutorOptions, layout: Layout, node: RunNode) -> tuple[int, ...]:
    """Private memory of each process: that of its device, or else an equal share of this machine's free memory."""
    share = _available_bytes() // len(node.ranks)
    held = [problem.cluster.type_of(layout.device_of(rank)).memory_bytes for rank in range(layout.world)]
    return tuple(min(share, each) if options.limit_memory else share for each in held)


def _available_bytes() -> int:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return 2**50
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")), 2**50)
