"""Proven lower bounds on the time and the memory of every plan of a problem."""

from pipebench.bounds.memory import MemoryBound, memory_bound
from pipebench.bounds.time import TimeBound, time_bound

__all__ = ["MemoryBound", "TimeBound", "memory_bound", "time_bound"]
