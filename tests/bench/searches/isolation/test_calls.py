"""What the filter of system calls refuses, and what a process keeps."""

import os
import resource
import socket
import sys
from collections.abc import Callable

import pytest

from pipebench.bench.searches.isolation.calls import refuse_calls

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")

REFUSED, DONE, NO_FILTER = 1, 0, 2


def in_a_child(work: Callable[[], object], network: bool = False, apart: bool = True) -> int:
    """How the work ends in a process with the filter."""
    child = os.fork()
    if child == 0:
        try:
            if not refuse_calls(network, apart):
                os._exit(NO_FILTER)
            work()
        except OSError:
            os._exit(REFUSED)
        os._exit(DONE)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture(autouse=True)
def _filtered() -> None:
    if in_a_child(lambda: None) == NO_FILTER:
        pytest.skip("the kernel permits no filter here")


def limit_of(process: int) -> object:
    return resource.prlimit(process, resource.RLIMIT_NOFILE)


OTHERS: dict[str, Callable[[], object]] = {
    "the limits of another process": lambda: limit_of(os.getppid()),
    "the priority of another process": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
    "the class of another process": lambda: os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0)),
}
OWN: dict[str, Callable[[], object]] = {
    "its own limits": lambda: limit_of(0),
    "its own priority": lambda: os.nice(1),
    "a pair of sockets": socket.socketpair,
    "a pipe": os.pipe,
    "a child": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("network", [True, False])
def test_no_process_reaches_into_another(what: str, network: bool) -> None:
    assert in_a_child(OTHERS[what], network) == REFUSED


@pytest.mark.parametrize("what", OWN)
@pytest.mark.parametrize("apart", [True, False])
def test_what_is_its_own_it_keeps(what: str, apart: bool) -> None:
    assert in_a_child(OWN[what], apart=apart) == DONE


def test_sockets_go_with_the_network() -> None:
    def work() -> object:
        return socket.socket(socket.AF_UNIX)

    assert (in_a_child(work), in_a_child(work, network=True)) == (REFUSED, DONE)


def test_without_namespaces_the_filter_takes_the_network() -> None:
    def work() -> object:
        return socket.socket(socket.AF_INET)

    ways = [(False, True), (False, False), (True, False)]
    assert [in_a_child(work, network, apart) for network, apart in ways] == [DONE, REFUSED, DONE]
