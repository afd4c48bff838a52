"""Frames on sockets and pipes: a length of eight bytes, then as many bytes."""

import os
import socket
import struct

from pipebench.domain.limits import MOST_MESSAGE_BYTES

HEADER = struct.Struct("!Q")
MESSAGE, READY, PROGRESS = b"M", b"R", b"P"
"""The first byte of what a child sends: a message, that it waits for what is handed over, or how far it is."""
KILL, HAND_OVER, READ_CLOCK = b"K", b"H", b"T"
"""What the parent commands: end the child; start its clock; read the clock."""
DESCRIPTORS = 4
"""Of an errand: what the child reports, prints and is handed over, and the line for commands."""


class BrokenWire(Exception):
    """The other side is gone, or what it sends is no frame."""


def frame(payload: bytes) -> bytes:
    """The bytes that carry a payload."""
    return HEADER.pack(len(payload)) + payload


def bytes_as_text(name: str) -> str:
    """A name of the system, which need not be UTF-8, as text that a message holds: a letter for each byte."""
    return name.encode(errors="surrogateescape").decode("latin-1")


def text_of_bytes(letters: str) -> str:
    """The name that `bytes_as_text` was given."""
    return letters.encode("latin-1").decode(errors="surrogateescape")


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything to a pipe."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def receive(connection: socket.socket) -> bytes:
    """One frame from a socket. Raises Broken when the other side is gone."""
    return _exactly(connection, _length(_exactly(connection, HEADER.size)))


def send_with_descriptors(connection: socket.socket, payload: bytes, descriptors: list[int]) -> None:
    """A frame whose header brings open files along."""
    socket.send_fds(connection, [HEADER.pack(len(payload))], descriptors)
    connection.sendall(payload)


def receive_with_descriptors(connection: socket.socket, count: int) -> tuple[bytes, list[int]]:
    """What `send_with_descriptors` sent. Raises Broken when the other side is gone."""
    header, descriptors, _, _ = socket.recv_fds(connection, HEADER.size, count)
    if not header:
        raise BrokenWire("the connection was closed")
    header += _exactly(connection, HEADER.size - len(header))
    return _exactly(connection, _length(header)), descriptors


def next_frame(received: bytes | bytearray, position: int) -> bytes | None:
    """The frame that begins there in what a pipe gave; None where it is not whole yet.

    Raises BrokenWire for a length out of bounds.
    """
    begins = position + HEADER.size
    if begins > len(received):
        return None
    ends = begins + _length(received[position:begins])
    return bytes(received[begins:ends]) if ends <= len(received) else None


def _length(header: bytes | bytearray) -> int:
    length: int = HEADER.unpack(header)[0]
    if length > MOST_MESSAGE_BYTES:
        raise BrokenWire(f"a frame of {length} bytes, at most {MOST_MESSAGE_BYTES} are read")
    return length


def _exactly(connection: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        part = connection.recv(min(count - len(parts), 2**20))
        if not part:
            raise BrokenWire("the connection was closed")
        parts += part
    return bytes(parts)
