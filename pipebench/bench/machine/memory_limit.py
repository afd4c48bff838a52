"""The memory that a child process may take where nobody says otherwise."""

import os

MOST_SEARCH_MEMORY_BYTES = 8 * 10**9


def _search_memory_bytes() -> int:
    """Half of the machine's memory, at most 8 GB, so that the system never has to kill a process."""
    machine: int = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(MOST_SEARCH_MEMORY_BYTES, machine // 2)


SEARCH_MEMORY_BYTES = _search_memory_bytes()
