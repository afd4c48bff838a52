"""What a child may do: write in its own folders, see a few variables, and reach no network. Linux only.

Landlock (kernel 5.13 and later) forbids writing elsewhere, tracing and signalling processes outside, and abstract
sockets; namespaces take away network and shared memory. Where the kernel does not permit one of them, the child
runs without it: `describe` says so.
"""

import ctypes
import os
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pipebench.bench.searches.isolation.calls import refuse_calls
from pipebench.bench.searches.isolation.mounts import hide, mount_read_only

# linux/landlock.h; the system calls have these numbers on every architecture
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION_FLAG = 1
PATH_BENEATH = 1
WRITE_FILE, REMOVE_DIR, REMOVE_FILE = 1 << 1, 1 << 4, 1 << 5
MAKE = sum(1 << bit for bit in range(6, 13))
REFER, TRUNCATE, CONTROL_DEVICE = 1 << 13, 1 << 14, 1 << 15
SCOPES = 0b11
"""Abstract sockets and signals."""
PR_SET_NO_NEW_PRIVS = 38
# linux/sched.h
NEW_USER, NEW_NETWORK, NEW_IPC, NEW_MOUNTS = 0x10000000, 0x40000000, 0x08000000, 0x00020000
SHARED_MEMORY = "/dev/shm"
TERMINALS = "/dev/pts"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx")
"""What a program may write to although it is not in its folders."""

PASSED_VARIABLES = frozenset(
    {"PATH", "LANG", "LANGUAGE", "TZ", "TERM", "SHELL", "USER", "LOGNAME", "VIRTUAL_ENV", "LD_LIBRARY_PATH"}
)
PASSED_PREFIXES = ("LC_", "PYTHON", "NUMBA_", "PIPEBENCH_", "MKL_", "OPENBLAS_", "OMP_", "GRB_LICENSE", "COV_CORE")
"""Variables that reach a plugin; whatever else it needs, its descriptor declares."""
USERS_LIST = "PIPEBENCH_VARIABLES"
SECRETS = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "API_KEY")


def passed_environment(
    environment: Mapping[str, str], folder: str, declared: Iterable[str] = ()
) -> dict[str, str]:
    """The variables that a child sees: those on the list, those that are declared, and homes in its own folder.

    declared: names, or prefixes that end with `*`; PIPEBENCH_VARIABLES names more of them, with commas between.
    """
    said = (*declared, *filter(None, environment.get(USERS_LIST, "").split(",")))
    exact = {name for name in said if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in said if name.endswith("*"))
    passed = {
        name: value
        for name, value in environment.items()
        if name in exact
        or (bool(prefixes) and name.startswith(prefixes))
        or ((name in PASSED_VARIABLES or name.startswith(PASSED_PREFIXES)) and not _is_secret(name))
    }
    own = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), folder)
    return passed | {name: value for name, value in own.items() if name not in exact}


def _is_secret(name: str) -> bool:
    return any(word in name for word in SECRETS)


def confine(
    writable: Iterable[str], network: bool = False, hidden: Iterable[str] = (), memory_bytes: int = 0
) -> None:
    """Confine this process, and all that it starts, for good. Call it with one thread.

    writable: folders that it may write in. network: whether it keeps network and shared memory of the machine.
    hidden: folders and files that it finds empty where it has neither; so it does terminals, and the processes
    above it: their command lines say what is searched, and what their counters say lasts from search to search.
    memory_bytes: the most of shared memory; 0 for half of the machine's.
    """
    if sys.platform != "linux":
        return
    folders = list(writable)
    apart = not network and _leave_network()
    if apart:
        mount_read_only(folders)
        folders += _own_shared_memory(memory_bytes)
        hide((TERMINALS, *_processes_above(), *hidden))
    elif network:
        folders.append(SHARED_MEMORY)
    _forbid_writing_elsewhere(folders)
    refuse_calls(network, apart)


@cache
def landlock_version() -> int:
    """The version of Landlock that the kernel offers; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(CREATE_RULESET, None, 0, VERSION_FLAG)))


def describe() -> str:
    """What holds for children here, in a few words."""
    network = "off" if can_leave_network() or can_refuse_calls() else "on"
    return f"writing: {'own folder' if landlock_version() else 'anywhere'}; network: {network}"


@cache
def can_leave_network() -> bool:
    """Whether a process here may have namespaces of its own; tried in a child."""
    if sys.platform != "linux":
        return False
    child = os.fork()
    if child == 0:
        os._exit(0 if _leave_network() else 1)  # of this child, so that nothing is flushed twice
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@cache
def can_refuse_calls() -> bool:
    """Whether a process here may have a filter of system calls; tried in a child."""
    if sys.platform != "linux":
        return False
    child = os.fork()
    if child == 0:
        os._exit(0 if refuse_calls(network=False, apart=False) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def _leave_network() -> bool:
    user, group = os.geteuid(), os.getegid()
    if _libc().unshare(NEW_USER | NEW_NETWORK | NEW_IPC | NEW_MOUNTS) != 0:
        return False
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    except OSError:
        pass  # it runs as nobody then, which a search does not mind
    return True


def _own_shared_memory(memory_bytes: int) -> tuple[str, ...]:
    """An empty folder of shared memory for this process and its children; multiprocessing's locks are there."""
    size = f"size={memory_bytes or '50%'}".encode()
    mounted = _libc().mount(b"tmpfs", SHARED_MEMORY.encode(), b"tmpfs", 0, size) == 0
    return (SHARED_MEMORY,) if mounted else ()


def _processes_above() -> Iterator[str]:
    """The folders in /proc of all processes above this one, and of their threads, which are not listed there."""
    process = os.getppid()
    with suppress(OSError, ValueError, IndexError):
        while process > 0:
            above = Path(f"/proc/{process}")
            status = (above / "stat").read_text(errors="replace")
            yield from (f"/proc/{thread.name}" for thread in (above / "task").iterdir())
            process = int(status.rpartition(")")[2].split()[1])


def _forbid_writing_elsewhere(writable: Iterable[str]) -> None:
    version = landlock_version()
    libc = _libc()
    if version == 0 or libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return
    handled = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE
    if version >= 2:
        handled |= REFER
    if version >= 3:
        handled |= TRUNCATE
    if version >= 5:
        handled |= CONTROL_DEVICE  # a terminal's size and modes are set through a file that is open for reading
    attributes = struct.pack("QQQ", handled, 0, SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = int(libc.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(size), 0))
    if ruleset < 0:
        return
    try:
        for path in (*writable, *DEVICES):
            _permit(ruleset, path, handled)
        libc.syscall(RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _permit(ruleset: int, path: str, rights: int) -> None:
    try:
        at = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(at).st_mode):
            rights &= WRITE_FILE | TRUNCATE | CONTROL_DEVICE
        rule = struct.pack("=Qi", rights, at)
        _libc().syscall(ADD_RULE, ruleset, PATH_BENEATH, rule, 0)
    finally:
        os.close(at)


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)
