"""How long kernels took to compile: the first run on a machine pays it once."""

import time
from typing import Any


class CompilationWatch:
    """Counts seconds spent in numba's compiler between `__enter__` and `__exit__`, nested calls once."""

    def __init__(self) -> None:
        self.seconds = 0.0
        """Wall seconds during which at least one kernel was being compiled."""
        self.cpu_seconds = 0.0
        """CPU seconds of this process meanwhile: fewer where others use the machine."""
        self._depth = 0
        self._began = 0.0, 0.0

    def __enter__(self) -> "CompilationWatch":
        from numba.core import event

        watch = self

        class Listener(event.Listener):
            def on_start(self, _event: Any) -> None:
                watch._start()

            def on_end(self, _event: Any) -> None:
                watch._end()

        self._event: Any = event
        self._listener: Any = Listener()
        self._event.register("numba:compile", self._listener)
        return self

    def __exit__(self, *error: object) -> None:
        self._event.unregister("numba:compile", self._listener)

    def _start(self) -> None:
        if self._depth == 0:
            self._began = time.perf_counter(), time.process_time()
        self._depth += 1

    def _end(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began[0]
            self.cpu_seconds += time.process_time() - self._began[1]
