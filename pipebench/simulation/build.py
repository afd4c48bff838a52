"""The trace: numpy columns to the value that everybody reads."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from pipebench.costs.formula import StageMemory
from pipebench.costs.quantise import IntArray
from pipebench.domain.trace import Trace
from pipebench.simulation.loop import Instants
from pipebench.simulation.memory_timeline import memory_timelines
from pipebench.simulation.network import FlowTable
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import LETTERS, TaskTable


def build_trace(
    stages: StageTable,
    tasks: TaskTable,
    network: FlowTable,
    instants: Instants,
    memory: Sequence[StageMemory],
    period_ns: int | None = None,
) -> Trace:
    """The simulated trace.

    Tasks stand lane after lane in their order; transfers in the order of their message numbers. Tensors that
    stay on their devices and order edges are not transfers.
    """
    columns = tasks.columns
    end = instants.start + tasks.duration
    flows = np.flatnonzero(network.in_place == 0)
    counts = [int(stages.count[network.sender[flow]]) for flow in flows]
    # The same int objects serve all flows, which saves making one for each message.
    numbers = tuple(range(max(counts, default=0)))
    kept = [
        slice(int(network.base[flow]), int(network.base[flow]) + count)
        for flow, count in zip(flows, counts, strict=True)
    ]
    return Trace(
        origin="simulated",
        lanes=columns.devices,
        lane=_repeated(np.arange(len(columns.devices)), np.diff(columns.first).tolist()),
        stage=_column(columns.stage),
        micro_batch=_column(columns.micro_batch),
        kinds=LETTERS[columns.kind].tobytes().decode(),
        start_ns=_column(instants.start),
        end_ns=_column(end),
        source=_repeated(network.sender[flows], counts),
        target=_repeated(network.receiver[flows], counts),
        tensor=_repeated(network.tensor[flows], counts),
        message=tuple(chain.from_iterable(numbers[:count] for count in counts)),
        transfer_kinds="".join("FB"[int(network.backward[f])] * n for f, n in zip(flows, counts, strict=True)),
        transfer_start_ns=_pieces(instants.sent, kept),
        transfer_end_ns=_pieces(instants.arrived, kept),
        memory=memory_timelines(columns, instants.start, end, memory),
        total_ns=int(max(end.max(initial=0), instants.arrived.max(initial=0))),
        period_ns=period_ns,
    )


def _column(values: IntArray) -> tuple[int, ...]:
    return tuple(values.tolist())


def _repeated(values: IntArray, counts: Sequence[int]) -> tuple[int, ...]:
    return tuple(chain.from_iterable((int(value),) * count for value, count in zip(values, counts, strict=True)))


def _pieces(values: IntArray, kept: Sequence[slice]) -> tuple[int, ...]:
    return _column(np.concatenate([values[piece] for piece in kept])) if kept else ()
