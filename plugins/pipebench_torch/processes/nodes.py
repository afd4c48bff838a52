"""The machines of a run: how many processes each has and where they meet."""

from ipaddress import ip_address

from pipebench.domain.errors import PipebenchError
from pipebench.domain.value import Value
from pipebench_torch.plugin import LaunchOptions

HERE = "127.0.0.1"


class Node(Value, frozen=True, kw_only=True):
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


def node_of(options: LaunchOptions, world: int) -> Node:
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
    return Node(processes=processes, rank=options.node_rank, host=host or HERE, port=int(port or 0))
