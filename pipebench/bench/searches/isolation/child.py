"""The child process of one errand: limits, streams, confinement, the work itself, and out."""

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
from msgspec.structs import replace

from pipebench.bench.searches.isolation.confinement import confine
from pipebench.bench.searches.isolation.wire import (
    HEADER,
    MESSAGE,
    PROGRESS,
    READY,
    bytes_as_text,
    frame,
    text_of_bytes,
    write_all,
)
from pipebench.domain.value import Value
from pipebench.hooks.installed.catalogue import ChildHost
from pipebench.system.parent import end_with_parent


class Errand(Value, frozen=True, kw_only=True):
    """What a child does, and its surroundings.

    work: "module:function", called as function(host, given, channel).
    given: what the child knows from the start; what it must not know before its clock runs is handed over.
    warm: whether the server imports what searches need before it forks the child.
    calibrate: whether the server runs its calibrations right before it starts the child.
    path: where modules are looked for.
    index: slot and name of each component to the entry point that provides it; empty for the server's own.
    folder: the current folder, for relative paths of scripts and programs; empty for `own`.
    own: the folder that it may write in.
    writable: folders and files besides.
    hidden: folders and files that it finds empty.
    kernels: the folder of compiled kernels, writable too.
    environment: all variables that it sees.
    memory_bytes: what it may take beyond what the server has; 0 for no limit.
    network: whether it may reach the network.
    """

    work: str
    given: bytes = b""
    warm: bool = True
    calibrate: bool = False
    path: tuple[str, ...] = ()
    index: dict[str, dict[str, str]] = {}
    folder: str = ""
    own: str = ""
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    kernels: str = ""
    environment: dict[str, str]
    memory_bytes: int
    network: bool = False


class Work(msgspec.Struct):
    """Of an errand what the server looks at; the rest is the child's."""

    work: str
    calibrate: bool = False

    @property
    def module(self) -> str:
        """The module that does it."""
        return self.work.partition(":")[0]


def encode_errand(errand: Errand) -> bytes:
    """What `become_child` reads."""
    return msgspec.msgpack.encode(_with_names(errand, bytes_as_text))


def _with_names(errand: Errand, changed: Callable[[str], str]) -> Errand:
    """The errand with every name of the system, which need not be Unicode, changed."""
    return replace(
        errand,
        path=tuple(map(changed, errand.path)),
        folder=changed(errand.folder),
        own=changed(errand.own),
        writable=tuple(map(changed, errand.writable)),
        hidden=tuple(map(changed, errand.hidden)),
        kernels=changed(errand.kernels),
        environment={changed(name): changed(value) for name, value in errand.environment.items()},
    )


_ERRANDS, _WORKS = msgspec.msgpack.Decoder(Errand), msgspec.msgpack.Decoder(Work)


def work_of(payload: bytes) -> Work:
    """What the server has to know of an errand."""
    return _WORKS.decode(payload)


class Channel:
    """A child's line to the process that started it. folder: its own, empty at the start."""

    def __init__(self, reports: int, handed: int, folder: str) -> None:
        self._reports, self._handed = reports, handed
        self._timed = False
        self.folder = folder

    def send(self, payload: bytes) -> None:
        """Send one message."""
        write_all(self._reports, frame(MESSAGE + payload))

    def progress(self, payload: bytes) -> None:
        """Say how far the work is; no message of its own."""
        write_all(self._reports, frame(PROGRESS + payload))

    def receive(self, about: bytes = b"") -> bytes:
        """Say that everything is prepared, and wait for what is handed over; from now on the clock runs.

        about: what the other side may want to know first. b"" when nothing is handed over.
        """
        self._timed = True
        write_all(self._reports, frame(READY + about))
        header = self._read(HEADER.size)
        return self._read(HEADER.unpack(header)[0]) if header else b""

    def close(self) -> None:
        """Wait until the other side has read the clock, where one runs."""
        if self._timed:
            os.read(self._handed, 1)

    def _read(self, count: int) -> bytes:
        parts = bytearray()
        while len(parts) < count and (part := os.read(self._handed, min(2**20, count - len(parts)))):
            parts += part
        return bytes(parts)


def become_child(payload: bytes, reports: int, output: int, handed: int) -> NoReturn:
    """Run the errand in the payload; reports go to one pipe, whatever is printed to the other. Never returns.

    Plugins are imported here and nowhere above: the one that the errand is about, and those that it asks for.
    """
    try:
        os.setsid()
        _streams(output)
        errand = _with_names(_ERRANDS.decode(payload), text_of_bytes)
        _surroundings(errand)
        module, _, function = errand.work.partition(":")
        channel = Channel(reports, handed, errand.own)
        getattr(import_module(module), function)(ChildHost(errand.index), errand.given, channel)
        channel.close()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


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
    sys.path[:] = errand.path
    os.environ.clear()
    os.environ.update(errand.environment)
    os.chdir(errand.folder or errand.own)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if errand.memory_bytes and (has := _address_space_bytes()) is not None:
        limit: Any = has + errand.memory_bytes
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    folders = (errand.own, errand.kernels, *errand.writable)
    confine([folder for folder in folders if folder], errand.network, errand.hidden, errand.memory_bytes)
    end_with_parent(os.getppid())  # a new user namespace forgets this, so it comes last


def _address_space_bytes() -> int | None:
    """What this process has mapped already; None where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return None
