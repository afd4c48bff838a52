"""A wall-clock limit on one trial in this process."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pipebench.hooks.context import DeadlineReached


@contextmanager
def wall_limit(seconds: float) -> Iterator[None]:
    """Raise DeadlineReached in the block once the seconds are over (checked between bytecodes).

    Outside the main thread there is no alarm: planners then stop at their context's deadline only.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise DeadlineReached("the time limit was reached")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
