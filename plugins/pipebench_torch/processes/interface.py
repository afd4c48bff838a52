"""The network interface by which nodes reach each other. Gloo would look it up by the name of the host, which many
systems map to the loopback: no other node could reach it there.
"""

import contextlib
import socket
import struct
import sys
from collections.abc import Iterator
from ipaddress import IPv6Address
from pathlib import Path

LOOPBACK = "lo"
ANY_PORT = 9
SIOCGIFADDR = 0x8915
IPV6 = Path("/proc/net/if_inet6")
"""Of Linux: a line an address, in hexadecimal digits first, its interface last."""


def address_towards(host: str) -> str:
    """The own address from which packets to a host leave, an IPv4 one where there is one; empty when there is no
    way to it. Nothing is sent.
    """
    with contextlib.suppress(OSError):
        found = socket.getaddrinfo(host, ANY_PORT, type=socket.SOCK_DGRAM)
        for family, kind, _, _, target in sorted(found, key=lambda one: one[0] != socket.AF_INET):
            with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                probe.connect(target)
                return str(probe.getsockname()[0])
    return ""


def interface_of(address: str) -> str:
    """The interface that has this address, empty when none has it (and outside Linux, where it is not known how to
    ask). Of several IPv4 addresses of an interface its first is known, the one that gloo takes.
    """
    if sys.platform != "linux":
        return ""
    address = address.partition("%")[0]
    return next((name for name, held in _held() if held == address), "")


def _held() -> Iterator[tuple[str, str]]:
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
