"""Worker processes on this machine, by joblib's loky."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from pipebench.bench.sweeps.assignment import work
from pipebench.domain.errors import PipebenchError


def on_loky(payloads: Sequence[bytes], jobs: int) -> Iterator[tuple[int, bytes]]:
    """The position and the delivery of each payload, as they are finished. Leaving early kills the workers.

    Raises PipebenchError when a worker dies (a planner cannot kill it: it runs in a child of the worker).
    """
    from joblib.externals.loky import get_reusable_executor

    executor: Any = get_reusable_executor(max_workers=jobs, timeout=60)
    finished = False
    try:
        futures: dict[Future[bytes], int] = {
            executor.submit(work, payload): position for position, payload in enumerate(payloads)
        }
        for future in as_completed(futures):
            yield futures.pop(future), future.result()
        finished = True
    except BrokenProcessPool as error:
        raise PipebenchError(f"a worker process died: {error}", "run again: what is finished is kept") from None
    finally:
        if not finished:
            executor.shutdown(kill_workers=True)
