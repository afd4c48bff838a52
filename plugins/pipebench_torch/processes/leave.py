"""How a process of a run ends."""

import os
import sys
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End this process at once: a thread of the backend that wants the interpreter while it is taken down aborts
    the process (`terminate called without an active exception`), though all its work is done.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
