"""It tries: a named block of multiprocessing's shared memory, left behind, remembers the search."""

import struct
from multiprocessing import resource_tracker
from multiprocessing.shared_memory import SharedMemory

from memo import remembering


def _recall(key):
    block = SharedMemory(key)
    resource_tracker.unregister(f"/{key}", "shared_memory")
    return struct.unpack_from("Q", block.buf)[0]


def _remember(key, number):
    block = SharedMemory(key, create=True, size=8)
    resource_tracker.unregister(f"/{key}", "shared_memory")
    struct.pack_into("Q", block.buf, 0, number)


plan = remembering(_recall, _remember)
