"""It tries: a segment of System V shared memory, which outlives every process, remembers the search."""

import ctypes

from memo import remembering

LIBRARY = ctypes.CDLL(None, use_errno=True)
LIBRARY.shmat.restype = ctypes.c_void_p
CREATE = 0o1600


def _segment(key, flags):
    number = LIBRARY.shmget(int(key[-7:], 16), 8, flags)
    if number < 0:
        raise OSError("no segment")
    address = LIBRARY.shmat(number, None, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError("not attached")
    return ctypes.c_uint64.from_address(address)


def _recall(key):
    return _segment(key, 0).value or None


def _remember(key, number):
    _segment(key, CREATE).value = number


plan = remembering(_recall, _remember)
