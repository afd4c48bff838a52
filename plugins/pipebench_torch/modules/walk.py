"""Operators run one after the other, in memory that holds no tensor longer than it is read."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from torch import Tensor

from pipebench.domain.graph import OperatorGraph

Run = Callable[[int, dict[int, Tensor]], dict[int, Tensor]]
"""What an operator makes of the tensors that it reads, both by position."""


class Walk:
    """A walk over some operators, in this order. kept: tensors that stay although nobody reads them any more."""

    def __init__(self, graph: OperatorGraph, operators: Sequence[int], kept: Iterable[int] = ()) -> None:
        self._operators = operators
        self._reads = {op: [graph.tensor_index[name] for name in graph.operators[op].inputs] for op in operators}
        last = {tensor: op for op in operators for tensor in self._reads[op]}
        self._drops: dict[int, list[int]] = {op: [] for op in operators}
        for tensor in last.keys() - set(kept):
            self._drops[last[tensor]].append(tensor)

    def run(self, inputs: Mapping[int, Tensor], run: Run) -> dict[int, Tensor]:
        """Run every operator. Returns what is left: a tensor is dropped behind its last reader."""
        values = dict(inputs)
        for operator in self._operators:
            values.update(run(operator, {tensor: values[tensor] for tensor in self._reads[operator]}))
            for tensor in self._drops[operator]:
                del values[tensor]
        return values
