"""Workers that end with the process that started them, also where that is killed and can tell nobody."""

import ctypes
import os
import signal
import sys
import threading
import time

POLL_S = 0.25
PR_SET_PDEATHSIG = 1


def end_with_parent(parent: int) -> None:
    """End this process as soon as its parent is gone; at once where it is gone already.

    parent: the process id of the parent. It must have been started by a thread that lasts as long as it is needed:
    Linux takes the end of that thread for that of the parent.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        os._exit(1)


def outlive_parent() -> None:
    """Take `end_with_parent` back, for a process that sees the end of its parent by itself and cleans up then."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_S)
    os._exit(1)
