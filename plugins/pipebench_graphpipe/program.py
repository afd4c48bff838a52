"""The stages of the space as a program of changes to one set of operators, and its kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipebench.algorithms.jit import kernel
from pipebench.costs.quantise import IntArray
from pipebench.domain.graph import OperatorGraph

NOT_A_STAGE = -1


class ProgramArrays(NamedTuple):
    """A program, as the kernel reads it.

    group_start, group_operators: operators of each group.
    step_group: the group to add, or -1 to remove the group added last.
    step_end: the solution row before which the set then ends, or -1.
    prelude_start, prelude: row r adds the groups prelude[prelude_start[r]] … first.
    row_end: row r is then itself a stage where row_end[r] >= 0.
    first, last: it runs the steps first[r] … last[r] - 1.
    row_slot: its stage that ends before solution row e has slot row_slot[r] + e.
    """

    group_start: IntArray
    group_operators: IntArray
    step_group: IntArray
    step_end: IntArray
    prelude_start: IntArray
    prelude: IntArray
    row_end: IntArray
    first: IntArray
    last: IntArray
    row_slot: IntArray


@dataclass(slots=True)
class StageProgram:
    """A program being written. slots: how many stages it has so far."""

    slots: int = 0
    _groups: list[tuple[int, ...]] = field(default_factory=list)
    _numbers: dict[tuple[int, ...], int] = field(default_factory=dict)
    _step_group: list[int] = field(default_factory=list)
    _step_end: list[int] = field(default_factory=list)
    _rows: list[tuple[list[int], int, int, int, int]] = field(default_factory=list)

    def _group(self, operators: tuple[int, ...]) -> int:
        if operators not in self._numbers:
            self._numbers[operators] = len(self._groups)
            self._groups.append(operators)
        return self._numbers[operators]

    @property
    def position(self) -> int:
        """Number of the next step."""
        return len(self._step_group)

    def add(self, operators: tuple[int, ...], end: int = NOT_A_STAGE) -> None:
        """A step that adds operators; with them the set is a stage that ends before solution row `end`."""
        self._step_group.append(self._group(operators))
        self._step_end.append(end)

    def remove(self, count: int) -> None:
        """Steps that remove what the last `count` steps added."""
        self._step_group += [-1] * count
        self._step_end += [NOT_A_STAGE] * count

    def row(self, prelude: Sequence[tuple[int, ...]], end: int, first: int, first_end: int, width: int) -> int:
        """A start: the prelude, then all steps from `first` to the present position. Returns its slot offset.

        end: where the prelude alone ends, or -1. first_end, width: the rows that its stages end before.
        """
        offset = self.slots - first_end
        self.slots += width - first_end
        self._rows.append(([self._group(group) for group in prelude], end, first, self.position, offset))
        return offset

    def arrays(self) -> ProgramArrays:
        """The finished program."""
        return ProgramArrays(
            group_start=_starts(self._groups),
            group_operators=_flat(self._groups),
            step_group=np.array(self._step_group, np.int64),
            step_end=np.array(self._step_end, np.int64),
            prelude_start=_starts([row[0] for row in self._rows]),
            prelude=_flat([row[0] for row in self._rows]),
            row_end=np.array([row[1] for row in self._rows], np.int64),
            first=np.array([row[2] for row in self._rows], np.int64),
            last=np.array([row[3] for row in self._rows], np.int64),
            row_slot=np.array([row[4] for row in self._rows], np.int64),
        )


def _starts(lists: Sequence[Sequence[int]]) -> IntArray:
    return np.cumsum([0, *map(len, lists)], dtype=np.int64)


def _flat(lists: Sequence[Sequence[int]]) -> IntArray:
    return np.array([item for each in lists for item in each], np.int64)


class GraphArrays(NamedTuple):
    """An operator graph as lists laid end to end: those of item i are at start[i] … start[i + 1] - 1.

    reads, makes: tensors of an operator.
    uses: its parameters.
    producer: of each tensor, -1 for an input of the model.
    readers: number of operators that read each tensor.
    """

    reads_start: IntArray
    reads: IntArray
    makes_start: IntArray
    makes: IntArray
    uses_start: IntArray
    uses: IntArray
    producer: IntArray
    readers: IntArray
    parameter_count: int


class Values(NamedTuple):
    """What each item adds to each column of a stage's sums, shape (items, columns).

    operators: each operator of the stage.
    parameters: each parameter once, however many operators use it.
    received: each tensor that comes in or is a model input, once, however many operators read it.
    sent: each tensor that goes out, once.
    workspace: of each operator, shape (operators,); the largest counts.
    """

    operators: IntArray
    parameters: IntArray
    received: IntArray
    sent: IntArray
    workspace: IntArray


def graph_arrays(graph: OperatorGraph) -> GraphArrays:
    """The arrays of a graph; parameters are numbered as listed."""
    number = {parameter.name: at for at, parameter in enumerate(graph.parameters)}
    reads = [[graph.tensor_index[name] for name in operator.inputs] for operator in graph.operators]
    uses = [sorted({number[name] for name in operator.parameters}) for operator in graph.operators]
    return GraphArrays(
        *end_to_end(reads),
        *end_to_end(graph.outputs),
        *end_to_end(uses),
        producer=np.array(graph.producers, np.int64),
        readers=np.array([len(readers) for readers in graph.consumers], np.int64),
        parameter_count=len(graph.parameters),
    )


def end_to_end(lists: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Where each list starts, with the end of the last; and all lists in one."""
    starts = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return starts, np.array([item for each in lists for item in each], np.int64)


def measure(program: ProgramArrays, graph: GraphArrays, values: Values, slots: int) -> tuple[IntArray, IntArray]:
    """Sums (slots, columns) and largest workspace (slots,) of every stage of the program."""
    columns, depth = values.operators.shape[1], program.group_start.shape[0] + 1
    sums, workspaces = np.zeros((slots, columns), np.int64), np.zeros(slots, np.int64)
    inside = np.zeros(values.operators.shape[0], np.bool_)
    lengths = graph.producer.shape[0], graph.parameter_count, columns, depth, depth + 1
    # Arrays are made here: numba takes a second to compile what makes them.
    scratch = [np.zeros(length, np.int64) for length in lengths]
    _measure(program, graph, values, sums, workspaces, inside, *scratch)
    return sums, workspaces


@kernel
def _measure(
    program: ProgramArrays,
    graph: GraphArrays,
    values: Values,
    sums: IntArray,
    workspaces: IntArray,
    inside: NDArray[np.bool_],
    read: IntArray,
    used: IntArray,
    total: IntArray,
    added: IntArray,
    workspace: IntArray,
) -> None:
    """The loops of measure, from zeros."""
    for row in range(program.row_slot.shape[0]):
        top = 0
        prelude = program.prelude_start[row + 1] - program.prelude_start[row]
        for step in range(prelude + program.last[row] - program.first[row]):
            if step < prelude:
                group = program.prelude[program.prelude_start[row] + step]
                end = program.row_end[row] if step == prelude - 1 else -1
            else:
                group = program.step_group[program.first[row] + step - prelude]
                end = program.step_end[program.first[row] + step - prelude]
            sign = 1
            if group < 0:
                sign = -1
                top -= 1
                group = added[top]
            largest = change(graph, values, program, group, sign, inside, read, used, total)
            if sign > 0:
                added[top] = group
                workspace[top + 1] = max(workspace[top], largest)
                top += 1
            if end >= 0:
                for column in range(len(total)):
                    sums[program.row_slot[row] + end, column] = total[column]
                workspaces[program.row_slot[row] + end] = workspace[top]
        inside[:] = False
        read[:] = 0
        used[:] = 0
        total[:] = 0


@kernel
def shift(total: IntArray, sign: int, amounts: IntArray) -> None:
    """Add amounts to the total, or take them away."""
    for column in range(total.shape[0]):
        total[column] += sign * amounts[column]


@kernel
def change(
    graph: GraphArrays,
    values: Values,
    program: ProgramArrays,
    group: int,
    sign: int,
    inside: NDArray[np.bool_],
    read: IntArray,
    used: IntArray,
    total: IntArray,
) -> int:
    """Add (sign 1) or remove (-1) a group of operators; the largest workspace among them."""
    largest = 0
    for at in range(program.group_start[group], program.group_start[group + 1]):
        operator = program.group_operators[at]
        largest = max(largest, values.workspace[operator])
        shift(total, sign, values.operators[operator])
        for use in range(graph.uses_start[operator], graph.uses_start[operator + 1]):
            parameter = graph.uses[use]
            if used[parameter] == (0 if sign > 0 else 1):
                shift(total, sign, values.parameters[parameter])
            used[parameter] += sign
        # A tensor comes in while its producer is outside (a model's input has none) and a reader inside, and
        # goes out while its producer is inside and a reader outside. `before` and `after` are readers inside
        # without and with this operator.
        for use in range(graph.reads_start[operator], graph.reads_start[operator + 1]):
            tensor = graph.reads[use]
            producer = graph.producer[tensor]
            before = read[tensor] if sign > 0 else read[tensor] - 1
            read[tensor] += sign
            if producer >= 0 and inside[producer]:
                if before + 1 == graph.readers[tensor]:
                    shift(total, -sign, values.sent[tensor])
            elif before == 0:
                shift(total, sign, values.received[tensor])
        for make in range(graph.makes_start[operator], graph.makes_start[operator + 1]):
            tensor = graph.makes[make]
            if read[tensor] > 0:
                shift(total, -sign, values.received[tensor])
            if read[tensor] < graph.readers[tensor]:
                shift(total, sign, values.sent[tensor])
        inside[operator] = sign > 0
    return largest
