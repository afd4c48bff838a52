"""Compile the kernels of planners side by side, before the first trial on a machine."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Lock

import msgspec

from pipebench.bench.components import Ready, ready_planner
from pipebench.bench.machine.flock import acquire
from pipebench.bench.searches.isolated import compile_kernels, compile_part
from pipebench.bench.searches.isolation.client import isolation, server_of_its_own
from pipebench.bench.searches.request import Searcher
from pipebench.hooks.descriptors import Planner
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import parse_reference
from pipebench.system.kernel_folder import kernel_folder

MARKS = ".compiled"
"""Beside the folders of kernels: empty files, one for each search whose kernels were compiled."""

TURN = "turn"
"""Beside the marks: the file that a command locks while it compiles."""

PATIENCE_S = 120.0
POLL_S = 0.05

Compilation = tuple[Ready, Searcher]
"""A planner, and the search for which its kernels are compiled."""


def compile_side_by_side(
    host: Host, searches: Iterable[Compilation], starting: Callable[[list[str]], None]
) -> None:
    """Compile for planners of plugins what no command of this environment has compiled yet, on all cores.

    Commands that begin together compile one after the other: each finds what those before it have compiled.

    starting: told of the planners before the work begins, if there is any. A trial compiles what it needs besides:
    kernels that only an option reaches, and those whose code has changed since.
    """
    folder = kernel_folder(MARKS)
    if folder is None:
        return
    kinds = {_kind(*each): each for each in searches if _compiles(each[0])}
    marks = {folder / _digest(kind): each for kind, each in kinds.items()}
    new = {mark: each for mark, each in marks.items() if not mark.exists()}
    names = list(dict.fromkeys(planner.component.name for planner, _ in new.values()))
    if not names:
        return
    starting(names)
    with _turn(folder / TURN):
        left = {mark: each for mark, each in new.items() if not mark.exists()}
        if left:
            _compile(host, left)


@contextlib.contextmanager
def _turn(file: Path) -> Iterator[None]:
    """Wait for other commands that compile, but not for one that hangs, nor where files have no locks."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            acquire(held.enter_context(open(file, "ab")).fileno(), "exclusive", PATIENCE_S, POLL_S)
        yield


def _compile(host: Host, new: dict[Path, Compilation]) -> None:
    isolation().prepare()
    agenda = _Agenda(_tasks(host, new))
    with ThreadPoolExecutor(_cores()) as pool:
        others = [pool.submit(_work_beside, agenda) for _ in range(min(_cores(), agenda.count) - 1)]
        agenda.work()
        for other in others:
            other.result()


@dataclass(frozen=True, slots=True)
class _Task:
    """needs: what has to be done before."""

    run: Callable[[], None]
    needs: tuple[Event, ...] = ()


class _Agenda:
    """Tasks that several threads take from: the first whose needs are done, else the first."""

    def __init__(self, tasks: Sequence[_Task]) -> None:
        self._left, self._lock = list(tasks), Lock()

    @property
    def count(self) -> int:
        """How many tasks are left."""
        return len(self._left)

    def work(self) -> None:
        """Do what is left, one after the other."""
        while (task := self._next()) is not None:
            for event in task.needs:
                event.wait()
            task.run()

    def _next(self) -> _Task | None:
        with self._lock:
            ready = (task for task in self._left if all(event.is_set() for event in task.needs))
            task = next(ready, self._left[0] if self._left else None)
            if task is not None:
                self._left.remove(task)
            return task


def _tasks(host: Host, new: dict[Path, Compilation]) -> list[_Task]:
    """Parts of kernels, those of planners with many of their own first, and planners on toy problems."""
    parts = {planner.component.name: _parts(host, planner) for planner, _ in new.values()}
    own = {name: sum(planner == name for planner, _ in each) for name, each in parts.items()}
    longest = sorted(parts, key=lambda name: own[name], reverse=True)
    done = {part: Event() for name in longest for part in parts[name]}

    def compile_one(name: str, function: str) -> None:
        try:
            compile_part(host, ready_planner(host, parse_reference(name)), function)
        finally:
            done[name, function].set()

    def compile_rest(mark: Path, planner: Ready, searcher: Searcher) -> None:
        compile_kernels(host, planner, searcher)
        with contextlib.suppress(OSError):
            mark.touch()

    rests = [
        _Task(partial(compile_rest, mark, *each), tuple(done[part] for part in parts[each[0].component.name]))
        for mark, each in new.items()
    ]
    rests.sort(key=lambda task: len(task.needs))
    # One that needs nothing compiles the suite's own kernels: others that begin with it would do so as well.
    return [*rests[:1], *(_Task(partial(compile_one, *part)) for part in done), *rests[1:]]


def _parts(host: Host, planner: Ready) -> list[tuple[str, str]]:
    """Planner and function of each part of kernels: of its own, and of planners that it asks."""
    found = host.slot("planners")
    names = [planner.component.name, *(name for name in planner.component.calls if name in found)]
    components = [(name, found[name].component) for name in names]
    return [(name, part) for name, one in components if isinstance(one, Planner) for part in one.kernel_parts]


def _work_beside(agenda: _Agenda) -> None:
    with server_of_its_own():
        agenda.work()


def _compiles(planner: Ready) -> bool:
    """Whether it may have kernels: a file of the user's is its own, and runs in its trial only."""
    return planner.kernels and bool(planner.component.load)


def _kind(planner: Ready, searcher: Searcher) -> tuple[str, ...]:
    """By which it is known whether kernels were compiled: options reach few others, which a trial compiles."""
    return planner.component.name, searcher.regime, planner.provider.distribution, planner.provider.version


def _digest(kind: tuple[str, ...]) -> str:
    return hashlib.sha256(msgspec.msgpack.encode(kind)).hexdigest()[:32]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
