"""How long kernels took to compile: the first run on a machine pays it once."""

from typing import Any


class CompilationWatch:
    """Counts seconds spent in numba's compiler between `__enter__` and `__exit__`, nested calls once."""

    def __enter__(self) -> "CompilationWatch":
        from numba.core import event

        self._event: Any = event
        self._listener: Any = self._event.RecordingListener()
        self._event.register("numba:compile", self._listener)
        return self

    def __exit__(self, *error: object) -> None:
        self._event.unregister("numba:compile", self._listener)

    @property
    def seconds(self) -> float:
        """Wall seconds during which at least one kernel was being compiled."""
        total, depth, began = 0.0, 0, 0.0
        for instant, happened in self._listener.buffer:
            if happened.is_start:
                began = instant if depth == 0 else began
                depth += 1
            else:
                depth -= 1
                total += instant - began if depth == 0 else 0.0
        return total
