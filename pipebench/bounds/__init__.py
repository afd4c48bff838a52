"""Proven lower bounds on the time and the memory of every plan of a problem."""

from pipebench.bounds.contiguous import CLASS, PLAIN, ClassBound, class_bound, in_class, recomputes, unbounded
from pipebench.bounds.memory import MemoryBound, memory_bound
from pipebench.bounds.time import TimeBound, time_bound

__all__ = [
    "CLASS",
    "PLAIN",
    "ClassBound",
    "MemoryBound",
    "TimeBound",
    "class_bound",
    "in_class",
    "memory_bound",
    "recomputes",
    "time_bound",
    "unbounded",
]
