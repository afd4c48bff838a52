"""Where the nodes of a run meet: a store on node 0, and the network interface that reaches it."""

import contextlib
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import timedelta
from ipaddress import IPv6Address
from pathlib import Path

import msgspec
import torch.distributed as dist

from pipebench_torch.processes.job import ENDED, ERROR, OUTPUT, REPORT, STATUS, Failure
from pipebench_torch.processes.nodes import RunNode

LOOPBACK = "lo"
ANY_PORT = 9
SIOCGIFADDR = 0x8915
IPV6 = Path("/proc/net/if_inet6")
"""Of Linux: a line an address, in hexadecimal digits first, its interface last."""


def address_towards(host: str) -> str:
    """The own address from which packets to a host leave, IPv4 where there is one; empty without a route.

    Sends nothing.
    """
    with contextlib.suppress(OSError):
        found = socket.getaddrinfo(host, ANY_PORT, type=socket.SOCK_DGRAM)
        for family, kind, _, _, target in sorted(found, key=lambda one: one[0] != socket.AF_INET):
            with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                probe.connect(target)
                return str(probe.getsockname()[0])
    return ""


def interface_of(address: str) -> str:
    """The interface that has this address; empty when none has it, and outside Linux.

    Of several IPv4 addresses of an interface only the first is known, which is the one that gloo takes.
    """
    if sys.platform != "linux":
        return ""
    address = address.partition("%")[0]
    return next((name for name, held in _interfaces() if held == address), "")


def _interfaces() -> Iterator[tuple[str, str]]:
    """Interfaces and their addresses."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # one without an IPv4 address
                answer = fcntl.ioctl(asking, SIOCGIFADDR, struct.pack("256s", name.encode()))
                yield name, socket.inet_ntoa(answer[20:24])
    with contextlib.suppress(OSError):
        for line in IPV6.read_text().splitlines():
            words = line.split()
            yield words[-1], str(IPv6Address(bytes.fromhex(words[0])))


LEFT = tuple(name.format("*") for name in (REPORT, ERROR, STATUS, OUTPUT, ENDED))
"""What processes leave in their folder for the one who started them."""
SHARE_S = 5.0
"""How long a node waits for what another has to give once the run is over."""


class NodeFailed(Exception):
    """The nodes did not come together."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.failure = Failure(kind=kind, message=message)


class Meeting:
    """The store on node 0, as one node uses it."""

    def __init__(self, node: RunNode, deadline_s: float) -> None:
        """Open the store on node 0, or connect to it from another node.

        Raises NodeFailed when the port is in use or node 0 does not answer.
        """
        self.node = node
        where = node.where
        left = timedelta(seconds=max(1.0, deadline_s - time.monotonic()))
        try:
            self.store = dist.TCPStore(
                node.host, node.port, None, node.rank == 0, left, wait_for_workers=False, multi_tenant=True
            )
        except RuntimeError as error:
            if node.rank:
                raise NodeFailed("other", f"node 0 does not answer at {where}: {first_line(error)}") from error
            if "EADDRINUSE" in str(error) or "in use" in str(error):
                raise NodeFailed("port", f"port {node.port} is in use") from error
            raise NodeFailed("other", f"no rendezvous at {where}: {first_line(error)}") from error
        self.port = self.store.port

    def agree(self, facts: Mapping[str, str], deadline_s: float) -> None:
        """Wait for all nodes. Raises NodeFailed when one does not come, or would run something else."""
        node = self.node
        if self.store.add(f"came/{node.rank}", 1) > 1:
            raise NodeFailed("other", f"two nodes say that they are node {node.rank}")
        self.store.set(f"address/{node.rank}", address_towards(node.host) if node.rank else "")
        self.store.set(f"facts/{node.rank}", msgspec.json.encode(facts))
        for other in range(node.count):
            theirs = msgspec.json.decode(self._of(other, "facts", deadline_s), type=dict[str, str])
            for name, value in facts.items():
                if theirs.get(name) != value:
                    said = f"its {name} is {theirs.get(name)}, that of node {node.rank} is {value}"
                    raise NodeFailed("other", f"node {other} runs something else: {said}")

    def interface(self) -> str:
        """The interface by which this node reaches the others, once they have agreed; empty when it is unknown.

        Other nodes use their route to node 0. Node 0 may resolve itself to the loopback only: it uses its route
        to node 1.
        """
        node = self.node
        if node.count == 1 or node.local:
            return LOOPBACK if sys.platform == "linux" else ""
        if node.rank:
            return interface_of(address_towards(node.host))
        return interface_of(address_towards(self.store.get("address/1").decode()))

    def _of(self, other: int, what: str, deadline_s: float) -> bytes:
        """Read what another node wrote. Raises NodeFailed at the time limit."""
        try:
            left = timedelta(seconds=max(0.1, deadline_s - time.monotonic()))
            self.store.wait([f"{what}/{other}"], left)
            return bytes(self.store.get(f"{what}/{other}"))
        except RuntimeError as error:
            message = f"node {other} of {self.node.count} did not come to {self.node.where} in time"
            raise NodeFailed("other", message) from error

    def fail(self) -> None:
        """Tell the others that a process of this node failed."""
        with contextlib.suppress(RuntimeError):
            self.store.set("failed", b"1")

    def answers(self) -> bool:
        """Whether the store is still there."""
        try:
            self.store.check(["failed"])
        except RuntimeError:
            return False
        return True

    def has_failed(self) -> bool:
        """Whether another node reported a failure, or node 0 is gone."""
        try:
            return bool(self.store.check(["failed"]))
        except RuntimeError:
            return True

    def share(self, folder: Path) -> None:
        """Exchange the files that the processes left with the other nodes; skip nodes that are gone."""
        with contextlib.suppress(RuntimeError):
            mine = {path.name: path.read_bytes() for name in LEFT for path in folder.glob(name)}
            self.store.set(f"left/{self.node.rank}", msgspec.msgpack.encode(mine))
            until = time.monotonic() + SHARE_S
            for other in range(self.node.count):
                if other != self.node.rank:
                    self._take(folder, other, until)
            self.store.add("shared", 1)
            while self.node.rank == 0 and self.store.add("shared", 0) < self.node.count:
                if time.monotonic() >= until:
                    return
                time.sleep(0.05)

    def _take(self, folder: Path, other: int, until: float) -> None:
        with contextlib.suppress(RuntimeError):
            self.store.wait([f"left/{other}"], timedelta(seconds=max(0.1, until - time.monotonic())))
            theirs = msgspec.msgpack.decode(self.store.get(f"left/{other}"), type=dict[str, bytes])
            for name, content in theirs.items():
                (folder / Path(name).name).write_bytes(content)


def first_line(error: BaseException) -> str:
    """The first line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__
