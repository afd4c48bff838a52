"""Dependencies of a periodic schedule, with index shifts (MadPipe section 4.1; notes of section 6)."""

from collections.abc import Iterator

from pipebench.check.periodic_operations import Operation, Pattern
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Witness


def broken_dependency(pattern: Pattern, edges: list[tuple[int, int]]) -> Witness | None:
    """The first operation of micro-batch 0 that starts before one that it needs has ended.

    Every other micro-batch is shifted by whole periods, so micro-batch 0 speaks for all. An order edge is an
    edge without transfer.
    """
    for before, after in _dependencies(pattern, edges):
        if after.start < before.end:
            message = (
                f"{after.name} starts at {exact_ns(after.start)}, {before.name} ends at {exact_ns(before.end)} "
                f"({exact_ns(before.end - after.start)} too late)"
            )
            return Witness(
                rule="dependency", message=message, stage=after.stage, micro_batch=0, instant_ns=after.start
            )
    return None


def _dependencies(pattern: Pattern, edges: list[tuple[int, int]]) -> Iterator[tuple[Operation, Operation]]:
    yield from zip(pattern.forward, pattern.backward, strict=True)
    for before, after in edges:
        down, up = pattern.forwarded.get((before, after)), pattern.returned.get((after, before))
        yield from _through(pattern.forward[before], down, pattern.forward[after])
        yield from _through(pattern.backward[after], up, pattern.backward[before])


def _through(
    producer: Operation, transfer: Operation | None, consumer: Operation
) -> Iterator[tuple[Operation, Operation]]:
    if transfer is None:
        yield producer, consumer
    else:
        yield producer, transfer
        yield transfer, consumer
