"""It tries: the least priority, the idle class and a timer that interrupts it a thousand times a second."""

import contextlib
import os
import signal

from real_work import solve


def plan(problem, context):
    with contextlib.suppress(OSError):
        os.nice(19)
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        return solve(problem)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
