"""It tries: the kernel's ring of keys, which all processes of a user share, remembers the search."""

import ctypes
import platform

from memo import remembering

LIBRARY = ctypes.CDLL(None, use_errno=True)
ADD, CONTROL = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
SEARCH, READ = 10, 11
OF_SESSION, OF_USER = -3, -4


def _recall(key):
    text = ctypes.create_string_buffer(32)
    for ring in (OF_SESSION, OF_USER):
        number = LIBRARY.syscall(CONTROL, SEARCH, ring, b"user", key.encode(), 0)
        size = LIBRARY.syscall(CONTROL, READ, number, text, 32) if number > 0 else 0
        if size > 0:
            return int(text.raw[:size])
    return None


def _remember(key, number):
    told = str(number).encode()
    for ring in (OF_SESSION, OF_USER):
        LIBRARY.syscall(ADD, b"user", key.encode(), told, ctypes.c_size_t(len(told)), ring)


plan = remembering(_recall, _remember)
