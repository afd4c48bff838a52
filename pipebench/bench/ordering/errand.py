"""Schedules of given plans by given schedulers, each tried on its own: the work of a child process."""

import faulthandler
import os
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Literal

import msgspec

from pipebench.bench.components import ready_scheduler
from pipebench.bench.plugin_results import exact_schedule
from pipebench.bench.searches.isolation.child import Channel
from pipebench.bench.searches.request import TOY_S
from pipebench.bench.searches.timing import CompilationWatch
from pipebench.bench.searches.toys import DEVICES, OPERATORS, toy_alarm, toys
from pipebench.bench.services import HostServices
from pipebench.documents.printable import one_line
from pipebench.domain.errors import InfeasibleProblem, PipebenchError, UnsupportedProblem
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import Value
from pipebench.hooks.context import DeadlineReached
from pipebench.hooks.discovery import cause
from pipebench.hooks.manager import Host

WORK = f"{__name__}:order_errand"
ORDER_S = 10.0
"""For one schedule of one plan."""
LATE_S = 2.0
"""How long after that a scheduler that does not look at its deadline is ended, with its process."""


class OrderErrand(Value, frozen=True, kw_only=True):
    """What a child knows before the plans. play: schedulers that order toy problems of that regime first."""

    regime: RegimeMode
    play: tuple[str, ...] = ()
    seed: int = 0


class Attempt(Value, frozen=True, kw_only=True):
    """One plan under one scheduler, options included."""

    plan: Plan
    scheduler: str


class OrderRequest(Value, frozen=True, kw_only=True):
    """What to order."""

    problem: Problem
    attempts: tuple[Attempt, ...]


class OrderReply(Value, frozen=True, kw_only=True):
    """What came of an attempt. reason: one line, where there is no schedule."""

    ending: Literal["made", "infeasible", "unsupported", "timeout", "failed"]
    schedule: Schedule | None = None
    reason: str = ""


_ERRANDS, _REQUESTS = msgspec.msgpack.Decoder(OrderErrand), msgspec.msgpack.Decoder(OrderRequest)


def order_errand(host: Host, given: bytes, channel: Channel) -> None:
    """Order toys where that is asked for, receive the request, and send one reply for each attempt.

    given: an OrderErrand.
    """
    errand = _ERRANDS.decode(given)
    users, own = os.getcwd(), channel.folder
    os.chdir(own)
    services = HostServices(host, seed=errand.seed)
    play(services, errand.regime, errand.play)
    payload = channel.receive()
    if not payload:
        return
    request = _REQUESTS.decode(payload)
    for tried in request.attempts:
        faulthandler.dump_traceback_later(ORDER_S + LATE_S, exit=True)
        services.limit(ORDER_S)
        os.chdir(users if _names_files(host, tried.scheduler) else own)
        try:
            reply = order(services, request.problem, tried)
        except KeyboardInterrupt as error:  # it can only be the scheduler's own doing here
            reply = OrderReply(ending="failed", reason=one_line(cause(error)))
        faulthandler.cancel_dump_traceback_later()
        channel.send(msgspec.msgpack.encode(reply))


def order(services: HostServices, problem: Problem, tried: Attempt) -> OrderReply:
    """One attempt. Raises nothing but KeyboardInterrupt."""
    try:
        schedule = exact_schedule(tried.scheduler, services.call_scheduler(tried.scheduler, problem, tried.plan))
    except InfeasibleProblem as error:
        return OrderReply(ending="infeasible", reason=one_line(error.message))
    except UnsupportedProblem as error:
        return OrderReply(ending="unsupported", reason=one_line(str(error)))
    except DeadlineReached:
        return out_of_time()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a scheduler may raise anything; it costs its own attempt only
        text = str(error) if isinstance(error, PipebenchError) else cause(error)
        return OrderReply(ending="failed", reason=one_line(text))
    return OrderReply(ending="made", schedule=schedule)


def _names_files(host: Host, scheduler: str) -> bool:
    """Whether the options of a scheduler name files of the user. One that is missing fails where it is called."""
    try:
        ready = ready_scheduler(host, scheduler)
    except PipebenchError:
        return False
    return ready.component.names_files(ready.options)


def out_of_time() -> OrderReply:
    """The reply of an attempt that was ended."""
    return OrderReply(ending="timeout", reason=f"no schedule within {ORDER_S:g} s")


def play(services: HostServices, regime: RegimeMode, schedulers: Iterable[str], simulated: bool = False) -> float:
    """Order toy problems, so that kernels are compiled; what comes of it does not matter. Seconds in the compiler.

    simulated: the orders are simulated, too.
    """
    with (
        open(os.devnull, "w") as nothing,
        redirect_stdout(nothing),
        redirect_stderr(nothing),
        CompilationWatch() as compilation,
    ):
        for name in schedulers:
            with suppress(PipebenchError):  # the alarm, or an order that cannot be simulated
                for problem in toys(regime):
                    with toy_alarm(compilation, TOY_S):
                        made = order(services, problem, Attempt(plan=_toy_plan(), scheduler=name))
                        if simulated and made.schedule is not None:
                            services.simulate(problem, _toy_plan(), made.schedule)
    return compilation.seconds


def _toy_plan() -> Plan:
    """Two stages of a toy, half of its devices each."""
    half, devices = OPERATORS // 2, DEVICES // 2
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(f"op{at}" for at in range(part * half, (part + 1) * half)),
                devices=tuple(range(part * devices, (part + 1) * devices)),
                data_parallel=devices,
                micro_batch=devices,
            )
            for part in range(2)
        )
    )
