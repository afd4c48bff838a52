"""The child process of one search: limits, streams, the search itself, and out."""

import contextlib
import faulthandler
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

import msgspec

from pipebench.bench.searches.isolation.errand import Errand
from pipebench.bench.searches.isolation.wire import frame, write_all
from pipebench.bench.searches.request import SearchReport, SearchRequest
from pipebench.hooks.catalogue import ChildHost
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference


def become_child(payload: bytes, reports: int, output: int) -> NoReturn:
    """Run the errand in the payload; reports go to one pipe, whatever is printed to the other. Never returns.

    Plugins are imported here and nowhere above: the one that the errand is about, and those that it asks for.
    """
    try:
        os.setsid()
        _streams(output)
        errand = msgspec.msgpack.decode(payload, type=Errand)
        _surroundings(errand)
        host = ChildHost(errand.index)

        def send(payload: bytes) -> None:
            write_all(reports, frame(payload))

        if errand.request is None:
            module, _, function = errand.work.partition(":")
            getattr(import_module(module), function)(host, errand.given, send)
        else:
            _search(host, errand.request, send)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _search(host: Host, request: SearchRequest, send: Callable[[bytes], None]) -> None:
    from pipebench.bench.components import ready_planner
    from pipebench.bench.searches.perform import failure, perform

    def report(each: SearchReport) -> None:
        send(msgspec.msgpack.encode(each))

    try:
        perform(host, ready_planner(host, parse_reference(request.planner)), request, report)
    except BaseException as error:  # an interrupt can only be the planner's own doing here
        report(failure(error))


def _streams(output: int) -> None:
    os.close(signal.set_wakeup_fd(-1))
    for number in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.close(nothing)
    faulthandler.enable()


def _surroundings(errand: Errand) -> None:
    os.environ.clear()
    os.environ.update(errand.environment)
    os.chdir(errand.folder)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if errand.memory_bytes and (has := _address_space_bytes()) is not None:
        limit: Any = has + errand.memory_bytes
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _address_space_bytes() -> int | None:
    """What this process has mapped already; None where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return None
