"""Limits of what the command itself does: reading and building a workload, scoring a plan."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from pipebench.domain.errors import PipebenchError

BUILD_S = 600.0
"""For reading a profile or a model's graph and building the problem."""
SCORE_S = 300.0
"""For checking, simulating and bounding one plan, executors apart."""


class LimitReached(PipebenchError):
    """Something of the command's own took too long."""


def scoring_limit() -> contextlib.AbstractContextManager[None]:
    """The limit of checking, simulating and bounding one plan."""
    return time_limit(SCORE_S, "scoring", "this limit is apart from --timeout; take fewer micro-batches")


@contextlib.contextmanager
def time_limit(limit_s: float, what: str, hint: str) -> Iterator[None]:
    """Raise LimitReached inside when the limit passes. Outside the main thread, and inside another limit, there is
    none.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise LimitReached(f"{what} took more than {limit_s:g} s", hint)

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
