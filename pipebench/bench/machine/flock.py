"""Wait for an advisory lock of the system on an open file.

Locks are shared or exclusive and end with the process that holds them. (filelock shares locks by a database
only.)
"""

import fcntl
import time
from typing import Literal

Kind = Literal["shared", "exclusive"]
_OPERATIONS = {"shared": fcntl.LOCK_SH, "exclusive": fcntl.LOCK_EX}


def acquire(descriptor: int, kind: Kind, patience_s: float, poll_s: float) -> bool:
    """Lock an open file; False when others still hold it after `patience_s` seconds.

    patience_s: 0 asks once. poll_s: seconds between two attempts.
    Raises OSError where the file system has no locks.
    """
    until_s = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, _OPERATIONS[kind] | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until_s:
                return False
            time.sleep(poll_s)
        else:
            return True
