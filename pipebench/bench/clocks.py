"""Clocks of ranks, aligned by the messages between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipebench.formats.chrome_trace import RankTrace


@dataclass(frozen=True, slots=True)
class Offset:
    """What to add to a rank's clock to read that of the first, in ns. within_ns: the true one is no further away;
    None where messages go one way only, which bounds one side.
    """

    ns: int
    within_ns: int | None


def clock_offsets(traces: Sequence[RankTrace]) -> list[Offset | None]:
    """One a rank; None: no messages tie it to the first.

    The k-th message of a tag that r sends to s is the k-th that s gets from r. It ends after it began, whatever
    the clocks say: the smallest difference each way bounds the offset, and the middle between the bounds is its
    estimate (Mills, Internet Time Synchronization, 1991). One way only: that bound itself. Ranks are reached over
    others, by the way whose bounds are together the narrowest.
    """
    offsets: list[Offset | None] = [None] * len(traces)
    reached: dict[int, tuple[float, Offset]] = {0: (0.0, Offset(0, 0))}
    while reached:
        base = min(reached, key=lambda rank: (reached[rank][0], rank))
        width, known = reached.pop(base)
        offsets[base] = known
        for other in range(len(traces)):
            ahead = _ahead(traces[base], traces[other]) if offsets[other] is None else None
            if ahead is None:
                continue
            bounded = known.within_ns is not None and ahead.within_ns is not None
            within = (known.within_ns or 0) + (ahead.within_ns or 0) if bounded else None
            cost = width + (float("inf") if ahead.within_ns is None else ahead.within_ns)
            if other not in reached or cost < reached[other][0]:
                reached[other] = (cost, Offset(known.ns - ahead.ns, within))
    return offsets


def _ahead(base: RankTrace, other: RankTrace) -> Offset | None:
    """By how much the other's clock is ahead of the base's."""
    there, back = _least(base, other), _least(other, base)
    if there is not None and back is not None:
        return Offset((there - back) // 2, abs(there + back + 1) // 2)
    if there is None and back is None:
        return None
    return Offset(there if there is not None else -(back or 0), None)


def _least(sender: RankTrace, receiver: RankTrace) -> int | None:
    """The smallest time of a message, by the receiver's clock at its end and the sender's at its beginning."""
    sent: dict[int, list[int]] = {}
    got: dict[int, list[int]] = {}
    for message in sender.sent:
        if message.peer == receiver.rank:
            sent.setdefault(message.tag, []).append(message.start_ns)
    for message in receiver.got:
        if message.peer == sender.rank:
            got.setdefault(message.tag, []).append(message.end_ns)
    pairs = [pair for tag, starts in sent.items() for pair in zip(starts, got.get(tag, ()), strict=False)]
    return min((end - start for start, end in pairs), default=None)
