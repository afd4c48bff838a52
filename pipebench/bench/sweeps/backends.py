"""Where the trials of a sweep run side by side: worker processes of loky, or a Dask cluster."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from pipebench.bench.searches.isolation.hidden import hidden_paths, hide_from_children
from pipebench.bench.sweeps.assignment import work
from pipebench.domain.errors import PipebenchError, PluginNotLoaded
from pipebench.domain.limits import MOST_WORKERS
from pipebench.system.parent import end_with_parent


def on_loky(payloads: Sequence[bytes], jobs: int) -> Iterator[tuple[int, bytes]]:
    """The position and the delivery of each payload, as they are finished. Leaving early kills the workers.

    There are as many workers as `jobs`, but no more than payloads and than MOST_WORKERS.
    Raises PipebenchError when a worker dies (a planner cannot kill it: it runs in a child of the worker).
    """
    from joblib.externals.loky import get_reusable_executor

    if not payloads:
        return
    finished = False
    executor: Any = None
    try:
        with _safe_path() as was:
            executor = get_reusable_executor(
                max_workers=min(jobs, len(payloads), MOST_WORKERS),
                timeout=60,
                initializer=_begin_worker,
                initargs=(os.getpid(), was, hidden_paths()),
                env={SAFE_PATH: "1"},
            )
            futures: dict[Future[bytes], int] = {
                executor.submit(work, payload): position for position, payload in enumerate(payloads)
            }
        for future in as_completed(futures):
            yield futures.pop(future), future.result()
        finished = True
    except BrokenProcessPool as error:
        raise PipebenchError(f"a worker process died: {error}", "run again: what is finished is kept") from None
    finally:
        if not finished and executor is not None:
            executor.shutdown(kill_workers=True)


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
