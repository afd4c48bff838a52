"""How a process ended, in words; and what asks it to end, as an interruption."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

REQUESTS = (signal.SIGTERM, signal.SIGHUP)
"""Of a time limit, a scheduler or a service that stops; of a terminal that is closed."""


def exit_text(code: int) -> str:
    """`ended with exit code 3`; of minus the number of a signal `was killed by SIGKILL`."""
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    """The name of a signal."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


@contextmanager
def requests_interrupt() -> Iterator[None]:
    """Inside, REQUESTS to end this process raise KeyboardInterrupt, as Ctrl-C does.

    One that is ignored (nohup), or that somebody handles, stays so. Threads have no say: there nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()
    taken = [each for each in REQUESTS if is_main and signal.getsignal(each) is signal.SIG_DFL]
    try:
        for each in taken:
            signal.signal(each, signal.default_int_handler)
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)
