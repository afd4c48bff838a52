"""The network interface by which nodes reach each other. Gloo would look it up by the name of the host, which many
systems map to the loopback: no other node could reach it there.
"""

import contextlib
import socket
import struct
import sys

LOOPBACK = "lo"
ANY_PORT = 9
SIOCGIFADDR = 0x8915


def address_towards(host: str) -> str:
    """The own address from which packets to a host leave, empty when there is no way to it. Nothing is sent."""
    with contextlib.suppress(OSError):
        family, kind, _, _, target = socket.getaddrinfo(host, ANY_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    return ""


def interface_of(address: str) -> str:
    """The interface that has this IPv4 address, empty when none has it (or where Linux's call is unknown)."""
    if sys.platform != "linux":
        return ""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # one without an IPv4 address
                answer = fcntl.ioctl(asking, SIOCGIFADDR, struct.pack("256s", name.encode()))
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return ""
