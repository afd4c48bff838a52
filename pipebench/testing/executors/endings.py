"""An executor ends: at its deadline, and when one of its workers dies."""

import sys

from msgspec.structs import replace

from pipebench.testing.asked import left_nothing
from pipebench.testing.calls import Answer
from pipebench.testing.executors.traces import Runs
from pipebench.testing.session import answers
from pipebench.testing.verdicts import Failed, Waived

SHORT_S, LATE_S = 0.3, 8.0
START_S = 3.0
ATTEMPTS = 3
"""What starting workers may take, besides the grace."""


def cancel(runs: Runs) -> None:
    """A run that would take a minute ends soon after a limit of 0.3 s, and leaves no worker behind.

    One that is late is made again: the machine may have been busy.
    """
    starting = START_S if runs.capabilities.launch == "processes" else 0.0
    for left in reversed(range(ATTEMPTS)):
        answer = _cancelled(runs)
        if answer.ending == "hung":
            raise Failed(f"still running {LATE_S:g} s after a limit of {SHORT_S:g} s; ask context.out_of_time()")
        if answer.ending in ("crashed", "died"):
            raise Failed(f"{answer.ending} at its limit: {answer.reason}; raise DeadlineReached")
        if answer.late_s(SHORT_S + starting) == 0:
            break
        if not left:
            raise Failed(f"ended {answer.wall_s:.1f} s after it began, the limit was {SHORT_S:g} s")
    left_nothing([answer])


def _cancelled(runs: Runs) -> Answer:
    """A run with a limit, after one without in the same process: imports are nobody's delay."""
    assert runs.asked
    warm = runs.call("warm", *next(iter(runs.planned.values())))
    call = replace(runs.slow(), name="cancelled", limit_s=SHORT_S, most_s=LATE_S)
    return answers([warm, call])[call.name]


def dead_worker(runs: Runs) -> None:
    """One of its processes is killed: an error that says so, in seconds."""
    if runs.capabilities.launch != "processes":
        raise Waived("it runs in process, there is no worker to lose")
    if sys.platform != "linux":
        raise Waived("only Linux says which processes are whose")
    call = replace(runs.slow(), name="dead worker", kill_worker=True, most_s=LATE_S)
    answer: Answer = answers([call])[call.name]
    if not answer.workers and answer.ending != "hung":
        raise Failed(f"it declares launch='processes' and started none: {answer.reason or answer.ending}")
    if answer.ending == "hung":
        raise Failed(f"a worker was killed, it still waited {LATE_S:g} s later")
    if answer.ending == "returned":
        raise Failed("a worker was killed, it returned a trace as if nothing had happened")
    if answer.ending in ("crashed", "died"):
        raise Failed(f"a worker was killed, it {answer.ending}: {answer.reason}; raise PipebenchError")
    left_nothing([answer])
