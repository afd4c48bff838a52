"""The checks of one executor, in the order in which they are reported."""

from collections.abc import Callable, Iterator
from functools import partial

from pipebench.hooks.manager import Host
from pipebench.testing.asked import called_as_declared, left_nothing, printed_nothing
from pipebench.testing.calls import Call
from pipebench.testing.descriptions import tried_options
from pipebench.testing.executors.endings import cancel, dead_worker
from pipebench.testing.executors.traces import Runs, clocks, counted, order, ran
from pipebench.testing.subject import Subject
from pipebench.testing.verdicts import Waived


def executor_checks(host: Host, subject: Subject) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every task once, in order, by clocks that make sense; an end at a deadline and when a worker dies."""
    runs = Runs(host, subject)
    yield "runs", partial(ran, runs)
    yield "tasks", partial(counted, runs)
    yield "order", partial(order, runs)
    yield "clocks", partial(clocks, runs)
    yield "cancel", partial(cancel, runs)
    yield "dead-worker", partial(dead_worker, runs)
    yield "calls", partial(_calls, runs)
    yield "determinism", partial(_determinism, runs)
    yield "silence", partial(_silence, runs)
    yield "state", partial(_state, runs)
    yield "options", partial(tried_options, subject, partial(_chain, runs))


def _chain(runs: Runs, label: str) -> Call:
    assert runs.asked
    name, (planned, schedule) = next(iter(runs.planned.items()))
    call = runs.call(name, planned, schedule)
    return Call(
        name=label,
        slot="executors",
        component=label,
        problem=call.problem,
        plan=call.plan,
        schedule=call.schedule,
    )


def _calls(runs: Runs) -> None:
    """It declares what it calls: what it asks its context for is in `calls` of its descriptor."""
    called_as_declared(runs.asked.first.values())


def _measured(runs: Runs) -> bool:
    return any(answer.trace and answer.trace.origin == "measured" for answer in runs.asked.first.values())


def _determinism(runs: Runs) -> None:
    """Two processes get the same trace, unless it is measured."""
    if _measured(runs):
        raise Waived("its traces are measured: times differ from run to run")
    runs.asked.determinism()


def _silence(runs: Runs) -> None:
    """Nothing reaches standard output."""
    if _measured(runs):
        printed_nothing(runs.asked.first.values())
    else:
        runs.asked.silence()


def _state(runs: Runs) -> None:
    """As everywhere; of measured traces only what is left behind: a second process has nothing to compare."""
    if _measured(runs):
        left_nothing(runs.asked.first.values())
    else:
        runs.asked.state()
