"""Trace: what ran when, and memory over time. Simulated or measured, the same type. Columnar."""

from typing import Literal

from pipebench.domain.limits import MOST_INSTANT_NS
from pipebench.domain.schedule import BACKWARD, FORWARD, TASK_KINDS
from pipebench.domain.value import Value, require


class MemoryTimeline(Value, frozen=True, kw_only=True):
    """Bytes in use on one device from each instant on; the last holds to the end.

    device: its id.
    time_ns: the instants.
    bytes: in use from each instant on.
    """

    device: int
    time_ns: tuple[int, ...]
    bytes: tuple[int, ...]

    def __post_init__(self) -> None:
        require(
            len(self.time_ns) == len(self.bytes),
            f"memory of device {self.device}: {len(self.time_ns)} instants and {len(self.bytes)} figures",
        )

    @property
    def peak_bytes(self) -> int:
        """The largest value."""
        return max(self.bytes, default=0)


class Trace(Value, frozen=True, kw_only=True):
    """Tasks and transfers with start and end, and the memory of each device, in ns and bytes.

    origin: whether it was simulated or measured.
    lanes: device ids of each lane.
    lane, stage, micro_batch, kinds, start_ns, end_ns: of each task, an entry.
    source, target: of each transfer, the stages.
    tensor: of each transfer, the position in the graph.
    message: of each transfer, the micro-batch of the sender.
    transfer_kinds, transfer_start_ns, transfer_end_ns: of each transfer, an entry.
    memory: of each device, the bytes in use.
    total_ns: length of one mini-batch (sync) or of the whole unrolled run (periodic).
    period_ns: steady time for one micro-batch of a periodic schedule, else None.
    """

    origin: Literal["simulated", "measured"]
    lanes: tuple[tuple[int, ...], ...]
    lane: tuple[int, ...]
    stage: tuple[int, ...]
    micro_batch: tuple[int, ...]
    kinds: str
    start_ns: tuple[int, ...]
    end_ns: tuple[int, ...]
    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()
    tensor: tuple[int, ...] = ()
    message: tuple[int, ...] = ()
    transfer_kinds: str = ""
    transfer_start_ns: tuple[int, ...] = ()
    transfer_end_ns: tuple[int, ...] = ()
    memory: tuple[MemoryTimeline, ...] = ()
    total_ns: int
    period_ns: int | None = None

    def __post_init__(self) -> None:
        require(
            len(self.lane)
            == len(self.stage)
            == len(self.micro_batch)
            == len(self.kinds)
            == len(self.start_ns)
            == len(self.end_ns),
            "the task columns differ in length",
        )
        require(
            len(self.source)
            == len(self.target)
            == len(self.tensor)
            == len(self.message)
            == len(self.transfer_kinds)
            == len(self.transfer_start_ns)
            == len(self.transfer_end_ns),
            "the transfer columns differ in length",
        )
        require(set(self.kinds) <= set(TASK_KINDS), "a task is of a kind that does not exist")
        require(set(self.transfer_kinds) <= {FORWARD, BACKWARD}, "a transfer is of kind F or B")
        require(
            max(self.lane, default=-1) < len(self.lanes) and min(self.lane, default=0) >= 0,
            "a task runs on a lane that is not there",
        )
        require(all(self.lanes), "a lane has no device")
        for name in ("start_ns", "end_ns", "transfer_start_ns", "transfer_end_ns", "micro_batch", "stage"):
            column = getattr(self, name)
            require(
                min(column, default=0) > -MOST_INSTANT_NS and max(column, default=0) < MOST_INSTANT_NS,
                f"{name} has an entry beyond 2^62",
            )
        require(self.total_ns < MOST_INSTANT_NS, f"total_ns is {self.total_ns}, it must be below 2^62")
        require(self.period_ns is None or 0 <= self.period_ns < MOST_INSTANT_NS, f"period_ns is {self.period_ns}")
        require(self.total_ns >= 0, f"total_ns is {self.total_ns}, it must not be negative")
