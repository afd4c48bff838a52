"""What the filter of system calls refuses, and what a process keeps."""

import ctypes
import errno
import os
import platform
import resource
import socket
import sys
from collections.abc import Callable

import pytest

from pipebench.bench.searches.isolation.calls import refuse_calls

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the filter is Linux's")

REFUSED, DONE, NO_FILTER = 1, 0, 2
IOPRIO_SET = {"x86_64": 251, "aarch64": 30}.get(platform.machine(), -1)


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


def called(number: int, *arguments: int) -> object:
    """A system call with arguments that the kernel refuses for another reason. Raises OSError for the filter."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, *arguments) < 0 and ctypes.get_errno() == errno.EPERM:
        raise PermissionError
    return None


def renice_a_user() -> None:
    """Of a user without other processes where the tests run as root, else as they are."""
    if os.geteuid() == 0:
        os.setuid(2**30)
    os.setpriority(os.PRIO_USER, 0, os.getpriority(os.PRIO_USER, 0))


OTHERS: dict[str, Callable[[], object]] = {
    "the limits of another process": lambda: limit_of(os.getppid()),
    "the priority of another process": lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
    "the class of another process": lambda: os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0)),
    "the priority of all processes of its user": renice_a_user,
    "the turns at the disk of all processes of its user": lambda: called(IOPRIO_SET, 3, 0, -1),
    "attributes of mounts": lambda: called(467, -1, 0, 0, 0, 0),
}
ASKED: dict[str, Callable[[], object]] = {
    "a ring of requests, which makes sockets as well": lambda: called(425, 0, 0),
    "the cores of another process": lambda: os.sched_setaffinity(os.getppid(), os.sched_getaffinity(0)),
}
OWN: dict[str, Callable[[], object]] = {
    "its own limits": lambda: limit_of(0),
    "its own priority": lambda: os.nice(1),
    "its own cores": lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)),
    "a pair of sockets": socket.socketpair,
    "a pipe": os.pipe,
    "a child": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("network", [True, False])
def test_no_process_reaches_into_another(what: str, network: bool) -> None:
    assert in_a_child(OTHERS[what], network) == REFUSED


@pytest.mark.parametrize("what", ASKED)
def test_no_process_asks_another_for_help(what: str) -> None:
    assert (in_a_child(ASKED[what]), in_a_child(ASKED[what], network=True)) == (REFUSED, DONE)


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

    def other() -> object:
        return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)

    ways = [(False, True), (False, False), (True, False)]
    for made in (work, other):
        assert [in_a_child(made, network, apart) for network, apart in ways] == [DONE, REFUSED, DONE]
