"""Memory of the fork server in large pages: a fork copies one entry in place of 512, and an exit frees one."""

import ctypes
import sys

MADV_COLLAPSE = 25
"""Linux 6.1 and later."""
LARGE_BYTES = 2**21


def collapse_pages() -> None:
    """Join what this process has written into large pages, where the kernel can. Otherwise nothing changes."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for start, end in _writable():
        first, last = -(-start // LARGE_BYTES) * LARGE_BYTES, end // LARGE_BYTES * LARGE_BYTES
        if first < last:
            libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), MADV_COLLAPSE)


def _writable() -> list[tuple[int, int]]:
    """Start and end of each writable mapping without a file; none where the system does not say."""
    try:
        with open("/proc/self/maps") as file:
            rows = [line.split() for line in file]
    except OSError:
        return []
    spans = [row[0].split("-") for row in rows if row[1].startswith("rw") and row[4] == "0"]
    return [(int(start, 16), int(end, 16)) for start, end in spans]
