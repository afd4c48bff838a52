"""The strict buffer rule of a periodic schedule: each buffer holds one tensor at a time (notes, section 1)."""

from collections.abc import Iterator

from pipebench.check.periodic_operations import Operation, Pattern
from pipebench.domain.units import exact_ns
from pipebench.domain.verdict import Witness


def overrun_buffer(pattern: Pattern, edges: list[tuple[int, int]]) -> Witness | None:
    """The first buffer that would have to hold two micro-batches.

    A receive buffer is taken from the start of the transfer to the start of the operation that reads it, a
    send buffer from the end of the operation that fills it to the end of the transfer. Without a transfer
    the one buffer is taken from the end of the producer to the start of the consumer. None may last longer
    than a period.
    """
    for before, after in edges:
        down, up = pattern.forwarded.get((before, after)), pattern.returned.get((after, before))
        for producer, transfer, consumer in (
            (pattern.forward[before], down, pattern.forward[after]),
            (pattern.backward[after], up, pattern.backward[before]),
        ):
            for name, taken, freed, stage in _spans(producer, transfer, consumer):
                if freed - taken > pattern.period:
                    message = (
                        f"the {name} between {producer.name} and {consumer.name} is taken for "
                        f"{exact_ns(freed - taken)}, the period is {exact_ns(pattern.period)}"
                    )
                    return Witness(rule="resource", message=message, stage=stage, instant_ns=taken)
    return None


def _spans(
    producer: Operation, transfer: Operation | None, consumer: Operation
) -> Iterator[tuple[str, int, int, int]]:
    if transfer is None:
        yield "buffer", producer.end, consumer.start, consumer.stage
    else:
        yield "send buffer", producer.end, transfer.end, producer.stage
        yield "receive buffer", transfer.start, consumer.start, consumer.stage
