"""Compile the kernels of planners side by side, before the first trial on a machine."""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from pipebench.bench.components import Ready
from pipebench.bench.searches.isolated import compile_kernels
from pipebench.bench.searches.isolation.client import isolation, server_of_its_own
from pipebench.bench.searches.request import Searcher
from pipebench.hooks.manager import Host
from pipebench.system.kernel_folder import kernel_folder

MARKS = ".compiled"
"""Beside the folders of kernels: empty files, one for each search whose kernels were compiled."""

Compilation = tuple[Ready, Searcher]
"""A planner, and the search for which its kernels are compiled."""


def compile_side_by_side(
    host: Host, searches: Iterable[Compilation], starting: Callable[[list[str]], None]
) -> None:
    """Compile for planners of plugins what no command of this environment has compiled yet, on all cores.

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
    isolation().prepare()
    left = iter(new.items())
    with ThreadPoolExecutor(_cores()) as pool:
        others = [pool.submit(_compile_beside, host, left) for _ in range(min(_cores(), len(names)) - 1)]
        _compile_all(host, left)
        for other in others:
            other.result()


def _compile_beside(host: Host, left: Iterator[tuple[Path, Compilation]]) -> None:
    with server_of_its_own():
        _compile_all(host, left)


def _compile_all(host: Host, left: Iterator[tuple[Path, Compilation]]) -> None:
    """What is left, one after the other; several threads take from it in turn."""
    for mark, compilation in left:
        compile_kernels(host, *compilation)
        with contextlib.suppress(OSError):
            mark.touch()


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
