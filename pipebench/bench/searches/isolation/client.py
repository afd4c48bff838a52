"""The parent's side: start the fork server, hand it errands one at a time, keep the limits, and say how each
ended.
"""

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from msgspec.structs import replace

from pipebench.bench.searches.isolation.child import Errand, encode_errand
from pipebench.bench.searches.isolation.confinement import passed_environment
from pipebench.bench.searches.isolation.conversation import (
    END_S,
    ChildExit,
    Conversation,
    Handover,
    Reports,
    Stream,
)
from pipebench.bench.searches.isolation.folders import ChildFolders
from pipebench.bench.searches.isolation.hidden import hidden_paths
from pipebench.bench.searches.isolation.wire import (
    BrokenWire,
    frame,
    receive,
    send_with_descriptors,
)
from pipebench.domain.errors import PipebenchError
from pipebench.domain.limits import MOST_MESSAGE_BYTES
from pipebench.hooks.discovery import SUITE
from pipebench.hooks.programs.program_call import THREAD_LIMITS, THREADS

START_S, WARM_S = 60.0, 300.0
"""For the server to start, and to get warm: on a new installation it compiles kernels first."""
KEPT_OUTPUT_BYTES = 4096
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]);"
    "from pipebench.bench.searches.isolation.server import main; main()"
)


class Isolation:
    """One fork server, its connection, and the folders of its children. `run` takes turns between threads."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._started_with = os.environ.get("PYTHONPATH", "")
        self.folders = ChildFolders()
        self.compiled: set[bytes] = set()
        """For which searchers kernels were compiled and kept."""
        kernels = {"NUMBA_CACHE_DIR": str(self.folders.kernels), "PYTHONHASHSEED": "0"}
        # What a process was started with stands in /proc/self/environ of all that are forked from it.
        passed = passed_environment(os.environ, str(self.folders.own))
        self.folders.renew(SUITE)
        ours, theirs = socket.socketpair()
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-c", START, str(theirs.fileno()), json.dumps(_import_path())],
                pass_fds=[theirs.fileno()],
                env=passed | kernels | dict.fromkeys(THREAD_LIMITS, str(THREADS)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if os.environ.get("PIPEBENCH_DEBUG") else subprocess.DEVNULL,
                start_new_session=True,
            )
        self._control = ours
        self._greeted = self._gets_warm = self._warm = False
        self.index: dict[str, dict[str, str]] = {}
        """Slot and name of each component to its entry point, for errands that bring no index of their own."""

    def fits(self) -> bool:
        """Whether the server runs, and Python would start it in the same way again."""
        return self._server.poll() is None and self._started_with == os.environ.get("PYTHONPATH", "")

    def warm_up(self) -> None:
        """Let the server import what searches need, while this process goes on."""
        with self._turn:
            if not self._gets_warm:
                self._gets_warm = True
                self.folders.renew(SUITE)
                with contextlib.suppress(OSError):  # a server that is gone is noticed when it is needed
                    self._control.sendall(frame(b""))

    def prepare(self) -> None:
        """Wait until the server is warm, and keep the kernels that it compiled for that.

        One that is lost then is noticed when it is needed.
        """
        self.warm_up()
        with self._turn, contextlib.suppress(BrokenWire, ConnectionError, TimeoutError):
            self._greet()

    def run(
        self,
        errand: Errand,
        limit_s: float,
        handover: Handover | None = None,
        owner: str = "",
        heard: Callable[[bytes], None] | None = None,
    ) -> ChildExit:
        """Run one errand to its end, or kill it and all its processes at a limit.

        limit_s: until the child is prepared where something is handed over, else until its end.
        owner: the distribution whose compiled kernels the child reads.
        heard: told of each message as it comes.
        """
        if errand.warm:
            self.warm_up()
        with self._turn:
            try:
                self._greet()
                self.folders.renew(owner)
                kernels = str(self.folders.kernels)
                errand = replace(
                    errand,
                    path=tuple(_import_path()),
                    own=str(self.folders.own),
                    kernels=kernels,
                    environment=errand.environment | {"NUMBA_CACHE_DIR": kernels},
                    index=errand.index or self.index,
                    hidden=hidden_paths(),
                )
                return self._run(errand, limit_s, handover, heard)
            except (BrokenWire, ConnectionError, TimeoutError):
                self.close()
                return ChildExit(lost=True)
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End the server and what it runs."""
        self._control.close()
        if self._gets_warm and not self._warm:
            self._server.kill()  # it has no child while it imports, and does not listen
        try:
            self._server.wait(END_S)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        self.folders.remove()

    def _greet(self) -> None:
        """Wait until the server has started, and is warm where it was asked to be."""
        self._control.settimeout(START_S)
        if not self._greeted:
            receive(self._control)
            self._greeted = True
        if self._gets_warm and not self._warm:
            self._control.settimeout(WARM_S)
            receive(self._control)
            self._warm = True
            self.folders.keep_kernels(SUITE)
        self._control.settimeout(END_S)

    def _run(
        self,
        errand: Errand,
        limit_s: float,
        handover: Handover | None,
        heard: Callable[[bytes], None] | None,
    ) -> ChildExit:
        reports, their_reports = os.pipe()
        output, their_output = os.pipe()
        their_hand, hand = os.pipe()
        commands, their_commands = socket.socketpair()
        theirs = [their_reports, their_output, their_hand, their_commands.fileno()]
        conversation = Conversation(
            commands,
            Reports(reports, MOST_MESSAGE_BYTES, heard),
            Stream(output, KEPT_OUTPUT_BYTES),
            hand,
            handover,
            self.folders.note,
        )
        try:
            try:
                send_with_descriptors(self._control, encode_errand(errand), theirs)
            finally:
                for descriptor in theirs[:-1]:
                    os.close(descriptor)
                their_commands.close()
            return conversation.follow(limit_s)
        finally:
            commands.close()
            os.close(reports)
            os.close(output)
            conversation.close_hand()


class _Own:
    """This process' fork server."""

    def __init__(self) -> None:
        self._choosing = threading.Lock()
        self._current: Isolation | None = None
        self._owner = 0

    def get(self) -> Isolation:
        """Started on first use, and again when it is gone."""
        with self._choosing:
            if self._owner != os.getpid():
                self._current = None  # it belongs to the process that this one was forked from
            if self._current is not None and not self._current.fits():
                self._current.close()
                self._current = None
            if self._current is None:
                self._current, self._owner = Isolation(), os.getpid()
            return self._current

    def end(self) -> None:
        """At the end of this process."""
        if self._current is not None and self._owner == os.getpid():
            self._current.close()


_own = _Own()
atexit.register(_own.end)
_of_thread: ContextVar[Isolation | None] = ContextVar("_of_thread", default=None)


def isolation() -> Isolation:
    """The fork server of this process, or of this thread where it has one of its own."""
    return _of_thread.get() or _own.get()


@contextlib.contextmanager
def server_of_its_own() -> Iterator[None]:
    """In this thread children come from another fork server, so that threads need not take turns."""
    server = Isolation()
    before = _of_thread.set(server)
    try:
        yield
    finally:
        _of_thread.reset(before)
        server.close()


def _import_path() -> list[str]:
    """Of this process, with every entry absolute."""
    return [os.path.abspath(entry) for entry in sys.path]


def errand_folder() -> str:
    """The current folder, for relative paths of scripts and programs. Raises PipebenchError when it is gone."""
    try:
        return os.getcwd()
    except OSError as error:
        raise PipebenchError(f"the current folder: {error.strerror}") from None


def child_environment(declared: tuple[str, ...] = ()) -> dict[str, str]:
    """What a child sees of this process' variables, homes in its own folder."""
    return passed_environment(os.environ, str(isolation().folders.own), declared)
