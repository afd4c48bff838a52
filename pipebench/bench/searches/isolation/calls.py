"""System calls that a child is refused: those that leave a mark on other processes, or ask them for help.

A seccomp filter, where the kernel has it and the machine is one of MACHINES. What Landlock and namespaces do not
cover: limits, priorities and cores of other processes, the kernel's keys, sockets that are files, and mounts.
"""

import ctypes
import errno
import platform
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

# linux/seccomp.h, linux/filter.h, linux/audit.h
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER_MODE = 38, 22, 2
LOAD, EQUALS, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
NUMBER_AT, MACHINE_AT, ARGUMENTS_AT, ARGUMENT_BYTES = 0, 4, 16, 8
OTHER_NUMBERS = 0x40000000
"""From here on x86_64 has a second set of numbers for the same calls."""
UNIX_SOCKETS, HOST_SOCKETS = socket.AF_UNIX, 40
ANY_MACHINE_NUMBERS = {"io_uring_setup": 425, "mount_setattr": 442, "open_tree_attr": 467}
PRIO_USER, IOPRIO_WHO_USER = 2, 3
"""All processes of a user: of the caller's own where the second argument is 0."""

When = Literal["always", "is", "is not"]


@dataclass(frozen=True, slots=True)
class Machine:
    """How a machine calls itself in a filter, and the numbers of its system calls."""

    audit: int
    numbers: dict[str, int]


MACHINES = {
    "x86_64": Machine(
        0xC000003E,
        {
            "shmget": 29,
            "socket": 41,
            "semget": 64,
            "msgget": 68,
            "setpriority": 141,
            "sched_setparam": 142,
            "sched_setscheduler": 144,
            "sched_setaffinity": 203,
            "mq_open": 240,
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "ioprio_set": 251,
            "prlimit64": 302,
            "sched_setattr": 314,
        },
    ),
    "aarch64": Machine(
        0xC00000B7,
        {
            "ioprio_set": 30,
            "sched_setparam": 118,
            "sched_setscheduler": 119,
            "sched_setaffinity": 122,
            "setpriority": 140,
            "mq_open": 180,
            "msgget": 186,
            "semget": 190,
            "shmget": 194,
            "socket": 198,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "prlimit64": 261,
            "sched_setattr": 274,
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """A call that is refused: always, or by the value of one of its arguments."""

    call: str
    when: When = "always"
    argument: int = 0
    value: int = 0


OF_OTHERS = (
    Refusal("prlimit64", "is not"),
    Refusal("sched_setparam", "is not"),
    Refusal("sched_setscheduler", "is not"),
    Refusal("sched_setattr", "is not"),
    Refusal("setpriority", "is not", 1),
    Refusal("setpriority", "is", 0, PRIO_USER),
    Refusal("ioprio_set", "is not", 1),
    Refusal("ioprio_set", "is", 0, IOPRIO_WHO_USER),
    Refusal("add_key"),
    Refusal("request_key"),
    Refusal("keyctl"),
    Refusal("mount_setattr"),
    Refusal("open_tree_attr"),
)
"""The first argument, or the second, is the process; 0 is the caller. Mounts are not made writable again."""
ASKING_OTHERS = (
    Refusal("socket", "is", 0, UNIX_SOCKETS),
    Refusal("socket", "is", 0, HOST_SOCKETS),
    Refusal("io_uring_setup"),
    Refusal("sched_setaffinity", "is not"),
)
"""Sockets that lead to other processes of the machine without its network, rings of requests, which make such
sockets too, and cores of others. Pairs of sockets are another call; frameworks for cards choose cores so.
"""
SHARED = (
    Refusal("socket"),
    Refusal("shmget"),
    Refusal("semget"),
    Refusal("msgget"),
    Refusal("mq_open"),
)
"""What namespaces of its own make harmless, and what is refused to a process without them."""


def refuse_calls(network: bool, apart: bool) -> bool:
    """Refuse them to this process, and all that it starts, for good.

    network: whether it keeps all sockets and the machine's shared memory. apart: whether it has namespaces of its
    own. Returns whether the kernel permits it.
    """
    program = filter_program(network, apart)
    if not program:
        return False
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    libc: Any = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(PR_SET_SECCOMP, FILTER_MODE, header, 0, 0) == 0)


@cache
def filter_program(network: bool, apart: bool) -> bytes:
    """The filter as the kernel reads it; empty where this system has none."""
    machine = MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None or sys.byteorder != "little":
        return b""
    refused = (*OF_OTHERS, *(() if network else ASKING_OTHERS), *(() if network or apart else SHARED))
    return b"".join(_filter(machine, refused))


def _filter(machine: Machine, refused: tuple[Refusal, ...]) -> Iterator[bytes]:
    """Instructions of eight bytes. Calls of another machine, which have other numbers, are refused altogether."""
    yield _step(LOAD, MACHINE_AT)
    yield _step(EQUALS, machine.audit, then=1)
    yield _step(RETURN, REFUSE | errno.EPERM)
    yield _step(LOAD, NUMBER_AT)
    yield _step(AT_LEAST, OTHER_NUMBERS, otherwise=1)
    yield _step(RETURN, REFUSE | errno.EPERM)
    numbers = machine.numbers | ANY_MACHINE_NUMBERS
    for each in refused:
        yield _step(LOAD, NUMBER_AT)
        if each.when == "always":
            yield _step(EQUALS, numbers[each.call], otherwise=1)
        else:
            yield _step(EQUALS, numbers[each.call], otherwise=3)
            yield _step(LOAD, ARGUMENTS_AT + ARGUMENT_BYTES * each.argument)
            skipped = {"otherwise": 1} if each.when == "is" else {"then": 1}
            yield _step(EQUALS, each.value, **skipped)
        yield _step(RETURN, REFUSE | errno.EPERM)
    yield _step(RETURN, ALLOW)


def _step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
