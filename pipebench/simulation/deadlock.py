"""Why a simulation stands still: the lanes, the task at which each stands, and one cycle of waits."""

from dataclasses import dataclass

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.costs.tasks import F
from pipebench.domain.schedule import TASK_KINDS
from pipebench.simulation.kernel import Instants
from pipebench.simulation.network import FlowTable, coverage
from pipebench.simulation.stages import StageTable
from pipebench.simulation.tasks import Deadlock, TaskTable

HINT = (
    "a stage needs at least as many samples in flight as each stage behind it, in an order that runs inputs first"
)


@dataclass(frozen=True, slots=True)
class Standstill:
    """The tables of a run that stopped before its end.

    link_order: as in run_loop.
    """

    stages: StageTable
    tasks: TaskTable
    network: FlowTable
    instants: Instants
    link_order: list[IntArray] | None = None

    def error(self) -> Deadlock:
        """The error that names the cycle."""
        columns = self.tasks.columns
        stuck = np.flatnonzero(self.instants.at < columns.first[1:])
        cycle, awaited = self._cycle(int(stuck[0]))
        heads = [int(self.instants.at[lane]) for lane in cycle]
        parts = [
            f"devices {_ids(columns.devices[lane])} stand at {columns.name(head)} and wait for {columns.name(row)}"
            for lane, head, row in zip(cycle, heads, awaited, strict=True)
        ]
        return Deadlock(
            f"deadlock of {len(stuck)} of {len(columns.devices)} lanes: {'; '.join(parts)}",
            HINT,
            lanes=tuple(columns.devices[lane] for lane in cycle),
            heads=tuple(self._task(head) for head in heads),
        )

    def _cycle(self, lane: int) -> tuple[list[int], list[int]]:
        """A cycle of lanes in which each waits for the next, and the rows that they wait for."""
        lanes: list[int] = []
        awaited: list[int] = []
        while lane not in lanes:
            row = self._awaited_row(int(self.instants.at[lane]))
            lanes.append(lane)
            awaited.append(row)
            lane = int(self.tasks.lane[row])
        begin = lanes.index(lane)
        return lanes[begin:], awaited[begin:]

    def _awaited_row(self, row: int) -> int:
        """A row that must run before `row` (or before the pair that begins with it) and has not run."""
        local = self.tasks.awaiting(row)
        local = local[self.instants.start[local] < 0]
        if len(local):
            return int(local[0])
        rows = (row, row + 1) if row in self.tasks.columns.together else (row,)
        for each in rows:
            sender = self._awaited_sender(each)
            if sender is not None:
                return sender
        raise AssertionError(f"row {row} waits for nothing")

    def _awaited_sender(self, row: int) -> int | None:
        """A row that must send a message that `row` still needs; None where all messages have arrived."""
        columns, network = self.tasks.columns, self.network
        stage, micro_batch = int(columns.stage[row]), int(columns.micro_batch[row])
        backward = int(columns.kind[row]) != F
        for flow in np.flatnonzero((network.receiver == stage) & (network.backward == backward)):
            reached, first, last = coverage(int(flow), network, self.stages)
            for at in np.flatnonzero(reached == micro_batch).tolist():
                for message in range(int(network.base[flow] + first[at]), int(network.base[flow] + last[at]) + 1):
                    if self.instants.arrived[message] < 0:
                        return self._sender(message)
        return None

    def _sender(self, message: int) -> int:
        """The row that a message waits for.

        It sends this message, or a message in front of it on its link.
        """
        row = self._row_of(message)
        if self.instants.start[row] < 0 or self.link_order is None:
            return row
        flow = self._flow_of(message)
        for before in self.link_order[int(self.network.link[flow])]:
            if self.instants.sent[before] < 0:
                return self._row_of(int(before))
        raise AssertionError(f"message {message} waits for nothing")

    def _row_of(self, message: int) -> int:
        network, stages = self.network, self.stages
        flow = self._flow_of(message)
        slot = stages.offset[network.sender[flow]] + network.backward[flow] * stages.slots
        return int(self.tasks.slot_row[slot + network.numbers(flow)[message - int(network.base[flow])]])

    def _flow_of(self, message: int) -> int:
        return int(np.searchsorted(self.network.base + self.network.count, message, side="right"))

    def _task(self, row: int) -> tuple[str, int, int]:
        columns = self.tasks.columns
        return TASK_KINDS[int(columns.kind[row])], int(columns.stage[row]), int(columns.micro_batch[row])


def _ids(devices: tuple[int, ...]) -> str:
    return str(devices[0]) if len(devices) == 1 else f"{min(devices)}-{max(devices)}"
