"""A limit on the memory of this process."""

import resource
from pathlib import Path

MARGIN_BYTES = 64 * 2**20


def limit_data(more_bytes: int) -> None:
    """Allow so many bytes of private memory beyond those in use now; allocations beyond fail.

    The kernel counts private writable mappings, which grow with tensors and not with shared libraries.
    """
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[5])
    except OSError:  # no such file outside Linux
        return
    limit = pages * resource.getpagesize() + more_bytes + MARGIN_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
