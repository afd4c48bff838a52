"""Traces for tests of pictures."""

from pipebench.domain.trace import MemoryTimeline, Trace

TWO = Trace(
    origin="simulated",
    lanes=((0,), (1, 2)),
    lane=(0, 1, 1, 0, 0),
    stage=(0, 1, 1, 0, 0),
    micro_batch=(0, 0, 0, 0, 0),
    kinds="FFBBR",
    start_ns=(0, 12, 22, 44, 64),
    end_ns=(10, 22, 42, 64, 74),
    source=(0, 1),
    target=(1, 0),
    tensor=(0, 0),
    message=(0, 0),
    transfer_kinds="FB",
    transfer_start_ns=(10, 42),
    transfer_end_ns=(12, 44),
    memory=(
        MemoryTimeline(device=0, time_ns=(0, 10, 64), bytes=(10, 40, 20)),
        MemoryTimeline(device=1, time_ns=(0, 12), bytes=(5, 5)),
        MemoryTimeline(device=2, time_ns=(0,), bytes=(0,)),
    ),
    total_ns=74,
)


def long_trace(tasks: int) -> Trace:
    """One device that is busy all the time with tasks of 1 ns, then one of a twentieth of the whole."""
    return Trace(
        origin="simulated",
        lanes=((0,),),
        lane=(0,) * (tasks + 1),
        stage=(0,) * (tasks + 1),
        micro_batch=(*(number // 2 for number in range(tasks)), tasks),
        kinds="FB" * (tasks // 2) + "F",
        start_ns=tuple(range(tasks + 1)),
        end_ns=(*range(1, tasks + 1), tasks + tasks // 20),
        total_ns=tasks + tasks // 20,
    )
