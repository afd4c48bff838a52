"""Where the trials of a sweep run side by side: worker processes of loky, or a Dask cluster."""

import contextlib
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import resource_tracker
from typing import Any

from pipebench.bench.searches.isolation.hidden import hidden_paths, hide_from_children
from pipebench.bench.sweeps.assignment import work
from pipebench.domain.errors import PipebenchError, PluginNotLoaded
from pipebench.domain.limits import MOST_WORKERS
from pipebench.system.parent import end_with_parent


def on_loky(payloads: Sequence[bytes], jobs: int) -> Iterator[tuple[int, bytes]]:
    """The position and the delivery of each payload, as they are finished. Leaving early kills the workers.

    There are as many workers as `jobs`, but no more than payloads and than MOST_WORKERS. Ctrl-C is for this
    process alone: a worker that is in its imports would print where it was.
    Raises PipebenchError when a worker dies (a planner cannot kill it: it runs in a child of the worker).
    """
    from joblib.externals.loky import get_reusable_executor
    from joblib.externals.loky.backend import resource_tracker as of_loky

    if not payloads:
        return
    with _safe_path():  # a tracker is a process that imports joblib
        for tracker in (of_loky, resource_tracker):  # where one is started below, it lets Ctrl-C through again
            tracker.ensure_running()
    finished = False
    executor: Any = None
    workers = min(jobs, len(payloads), MOST_WORKERS)
    waiting = iter(enumerate(payloads))
    futures: dict[Future[bytes], int] = {}
    try:
        with _safe_path() as was, _interrupts_later():
            executor = get_reusable_executor(
                max_workers=workers,
                timeout=60,
                initializer=_begin_worker,
                initargs=(os.getpid(), was, hidden_paths()),
                env={SAFE_PATH: "1"},
            )
        while True:
            with _safe_path(), _interrupts_later():
                for position, payload in islice(waiting, QUEUED * workers - len(futures)):
                    futures[executor.submit(work, payload)] = position
            if not futures:
                break
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                yield futures.pop(future), future.result()
        finished = True
    except BrokenProcessPool as error:
        raise PipebenchError(f"a worker process died: {error}", "run again: what is finished is kept") from None
    finally:
        if not finished and executor is not None:
            executor.shutdown(kill_workers=True)


QUEUED = 2
"""Payloads given to loky at once, for each worker. It sends these on; where it is shut down while others wait, a
thread of it dies with a traceback.
"""


@contextlib.contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C waits for the end of the block; processes that are started in it do not hear it until they ask."""
    was = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, was)


SAFE_PATH = "PYTHONSAFEPATH"
"""Keeps the current folder off the import path of a process that is started with it."""


@contextlib.contextmanager
def _safe_path() -> Iterator[str | None]:
    """The variable set for processes that loky starts; gives its former value. Planners never see it."""
    was = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield was
    finally:
        _restore(was)


def _restore(was: str | None) -> None:
    if was is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = was


def _begin_worker(parent: int, safe_path: str | None, hidden: tuple[str, ...]) -> None:
    """A worker outlives nobody: it ends with the process that wants its results, whatever that ends of."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    end_with_parent(parent)
    hide_from_children(hidden)
    _restore(safe_path)


CONNECT_S = 10.0


def on_dask(payloads: Sequence[bytes], address: str) -> Iterator[tuple[int, bytes]]:
    """The position and the delivery of each payload, as they are finished. Leaving early cancels the rest.

    Raises PipebenchError when nobody listens at the address, the cluster has no workers, or it goes away.
    """
    client = _connect(address)
    try:
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise PipebenchError(
                f"the Dask cluster at {address} has no workers", f"start one: dask worker {address}"
            )
        yield from _run(client, payloads)
    finally:
        client.close()


def _run(client: Any, payloads: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    import distributed

    as_completed: Any = distributed.as_completed
    futures = [client.submit(work, payload, pure=False) for payload in payloads]
    positions = {future.key: position for position, future in enumerate(futures)}
    try:
        for future in as_completed(futures, loop=client.loop):
            try:
                delivery: bytes = future.result()
            except Exception as error:  # distributed gives the worker's own error, or its own for a lost worker
                raise PipebenchError(
                    f"a Dask worker failed: {type(error).__name__}: {error}", "run again: what is finished is kept"
                ) from None
            yield positions[future.key], delivery
            future.release()
    finally:
        client.cancel(futures)


def _connect(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise PluginNotLoaded("Dask is not installed", "pip install 'pipebench[distributed]'") from None
    try:
        connect: Any = distributed.Client
        return connect(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise PipebenchError(
            f"no Dask scheduler answers at {address}: {_first(error)}", "check --scheduler-address"
        ) from None


def _first(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
