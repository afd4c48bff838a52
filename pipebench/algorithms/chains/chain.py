"""The integer chain that contiguous planners work on: what every run of layers costs at one micro-batch size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.graph_orders import Layers
from pipebench.costs.formula import Formula, Holdings, Memory, StageMemory, StageTimes
from pipebench.costs.messages import level_between
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.costs.sums.terms import Terms
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.recomputation import Recompute


class ChainArrays(NamedTuple):
    """What kernels read, L layers: a stage of layers k … e-1 is the half-open interval [k, e), cut k lies
    before layer k.

    A stage takes or holds what every stage does, what its layers add, and what its two cuts add.

    every_ns: forward + backward of every stage. every_held: bytes of every stage with a live micro-batch.
    every_each: bytes of every stage for each live micro-batch.
    work: prefix sums of forward + backward ns of layers, shape (L + 1,).
    held: prefix sums of bytes of layers with a live micro-batch, (L + 1,). once: the part of them that is held
    only while a micro-batch is live. each: prefix sums of bytes of layers for each live micro-batch, (L + 1,).
    shared_start, shared_bytes, shared_next: layer i lists at shared_start[i] … shared_start[i + 1] - 1 the bytes
    of `held` for weights that it shares with layer shared_next, the next one to use them: a stage that holds both
    holds them once. again_start, again_bytes, again_next: the same for bytes of `each`, for inputs of the model.
    workspace: (L,), a stage needs the largest of its layers.
    cut_held: bytes held at one side of a cut, (L + 1,), 0 at both ends.
    entering: bytes for each live micro-batch of the stage that begins at a cut, (L + 1,).
    cut_ns: transfer forward + gradient at a cut, (link levels, L + 1). hop: row of cut_ns for the link before the
    j-th stage from the end, (P,).
    """

    every_ns: int
    every_held: int
    every_each: int
    work: IntArray
    held: IntArray
    once: IntArray
    each: IntArray
    shared_start: IntArray
    shared_bytes: IntArray
    shared_next: IntArray
    again_start: IntArray
    again_bytes: IntArray
    again_next: IntArray
    workspace: IntArray
    cut_held: IntArray
    entering: IntArray
    cut_ns: IntArray
    hop: IntArray


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of layers in ns and bytes at one micro-batch size, one device a stage.

    Stage times, transfers and memory of every interval equal those of CostModel on the plan that places the
    stages on consecutive devices, the last stage on the last device (anywhere, on a cluster of one level).
    every_times, every_memory: of every stage, whatever is in it. backward: prefix sums of the backward part of
    arrays.work, shape (L + 1,). cut_forward, cut_backward: the parts of arrays.cut_ns, same shape.
    """

    layers: Layers
    micro_batch: int
    recompute: Recompute
    arrays: ChainArrays
    one_level: bool
    every_times: StageTimes
    every_memory: StageMemory
    backward: IntArray
    cut_forward: IntArray
    cut_backward: IntArray

    @property
    def length(self) -> int:
        """Number of layers."""
        return len(self.layers)

    def work_ns(self, first: int, end: int) -> int:
        """Forward + backward of layers first … end - 1 as one stage."""
        return self.every_times.period + int(self.arrays.work[end] - self.arrays.work[first])

    def backward_ns(self, first: int, end: int) -> int:
        """Backward of layers first … end - 1 as one stage."""
        return self.every_times.backward + int(self.backward[end] - self.backward[first])

    def memory(self, first: int, end: int) -> StageMemory:
        """Memory of layers first … end - 1 as one stage on one device."""
        arrays, every = self.arrays, self.every_memory
        held = int(arrays.held[end] - arrays.held[first] + arrays.cut_held[first] + arrays.cut_held[end])
        for entry in range(arrays.shared_start[first], arrays.shared_start[end]):
            if arrays.shared_next[entry] < end:
                held -= int(arrays.shared_bytes[entry])
        once = int(arrays.once[end] - arrays.once[first])
        each = int(arrays.each[end] - arrays.each[first] + arrays.entering[first])
        for entry in range(arrays.again_start[first], arrays.again_start[end]):
            if arrays.again_next[entry] < end:
                each -= int(arrays.again_bytes[entry])
        return Memory(
            held=every.held + held - once,
            per_micro_batch=every.per_micro_batch + each,
            while_live=every.while_live + once,
            workspace=every.workspace + int(arrays.workspace[first:end].max()),
        )

    def most_live(self, first: int, end: int, limit_bytes: int) -> int:
        """How many live micro-batches of that stage fit within the limit; below 1: none."""
        return self.memory(first, end).most_live(limit_bytes)

    def items(self, bounds: tuple[int, ...]) -> IntArray:
        """Durations of stage, cut, stage, … of the stages [bounds[0], bounds[1]), …, shape (2n - 1,)."""
        stages = len(bounds) - 1
        items = np.empty(2 * stages - 1, np.int64)
        items[::2] = [self.work_ns(first, end) for first, end in pairwise(bounds)]
        for cut in range(1, stages):
            items[2 * cut - 1] = self.arrays.cut_ns[self.arrays.hop[stages - 1 - cut], bounds[cut]]
        return items


class _AddedMemory:
    """What parts add to the memory of a stage: `Formula.memory` with them, less that of every stage."""

    def __init__(self, formula: Formula, recompute: Recompute) -> None:
        self.formula, self.recompute = formula, recompute
        self.every = formula.every_stage(recompute=recompute)
        self._every_state = formula.state_bytes(0, 1)

    def state_bytes(self, parameter_bytes: IntArray) -> IntArray:
        """State of each of these weights; whole elements, so that the state of several is the sum."""
        return self.formula.state_bytes(parameter_bytes, 1) - self._every_state

    def memory(
        self,
        state_bytes: IntArray | None = None,
        saved_bytes: IntArray | None = None,
        input_bytes: IntArray | None = None,
        buffer_bytes: IntArray | None = None,
    ) -> Memory[IntArray]:
        """Of parts of a stage with these holdings, arrays of one shape; None: 0."""
        given = state_bytes, saved_bytes, input_bytes, buffer_bytes
        none = np.zeros_like(next(each for each in given if each is not None))
        state, saved, inputs, buffers = (none if each is None else each for each in given)
        content = Holdings(self._every_state + state, saved, inputs, buffers, none, none, none, none)
        whole = self.formula.memory(content, self.recompute)
        return Memory(
            whole.held - self.every.held,
            whole.per_micro_batch - self.every.per_micro_batch,
            whole.while_live - self.every.while_live,
            whole.workspace - self.every.workspace,
        )


def build_chain(model: CostModel, layers: Layers, micro_batch: int, recompute: Recompute = "none") -> Chain:
    """The chain of these layers at a micro-batch size, on devices that are all of one type.

    async only. Costs are those of `Formula` on the terms of the model; weights that several layers use are
    charged once in each stage that uses them, and so are the model's inputs, which a stage that recomputes keeps.
    """
    cluster, terms, formula = model.problem.cluster, model.terms(micro_batch), model.formula
    inside, across = _Lists(layers.operators), _Lists(((), *layers.crossing, ()))
    added = _AddedMemory(formula, recompute)
    every = formula.times((0, 0, 0), formula.update_ns(0), micro_batch, 1, recompute)
    forward, backward = _layer_times(model, terms, inside, micro_batch, recompute)
    forward, backward = forward - every.forward, backward - every.backward
    levels: list[LinkLevel] = []
    hop = [0] * cluster.size
    for position in range(cluster.size - 1):
        sender = cluster.size - 2 - position
        level = level_between(cluster, (sender,), (sender + 1,))
        if level not in levels:
            levels.append(level)
        hop[position] = levels.index(level)
    cut_forward, cut_backward = (
        np.stack([across.sums(formula.message_ns(level, sent, 1, 1)) for level in levels or cluster.levels[:1]])
        for sent in (terms.tensor_bytes, terms.gradient_bytes)
    )
    held, shared = _held_once(_weights(model, terms, added, layers))
    read, again = _held_once(_model_inputs(model, terms, layers))
    of_layers = added.memory(
        state_bytes=np.array(held, np.int64),
        saved_bytes=inside.sums(terms.saved_bytes),
        input_bytes=np.array(read, np.int64),
    )
    cuts = added.memory(
        input_bytes=across.sums(terms.tensor_bytes), buffer_bytes=across.sums(terms.exchanged_bytes)
    )
    again_bytes = np.array([size for entries in again for size, _ in entries], np.int64)
    arrays = ChainArrays(
        every_ns=every.period,
        every_held=added.every.held + added.every.while_live + added.every.workspace,
        every_each=added.every.per_micro_batch,
        work=_prefix(forward + backward),
        held=_prefix(of_layers.held + of_layers.while_live),
        once=_prefix(of_layers.while_live),
        each=_prefix(of_layers.per_micro_batch),
        shared_start=_prefix([len(entries) for entries in shared]),
        shared_bytes=np.array([size for entries in shared for size, _ in entries], np.int64),
        shared_next=np.array([after for entries in shared for _, after in entries], np.int64),
        again_start=_prefix([len(entries) for entries in again]),
        again_bytes=added.memory(input_bytes=again_bytes).per_micro_batch,
        again_next=np.array([after for entries in again for _, after in entries], np.int64),
        workspace=inside.largest(terms.workspace_bytes),
        cut_held=cuts.held + cuts.while_live,
        entering=cuts.per_micro_batch,
        cut_ns=cut_forward + cut_backward,
        hop=np.array(hop, np.int64),
    )
    return Chain(
        layers,
        micro_batch,
        recompute,
        arrays,
        len(levels) <= 1,
        every,
        added.every,
        _prefix(backward),
        cut_forward,
        cut_backward,
    )


def _layer_times(
    model: CostModel, terms: Terms, layers: "_Lists", micro_batch: int, recompute: Recompute
) -> tuple[IntArray, IntArray]:
    """Forward and backward ns of each layer as a stage of its own."""
    compute = (
        layers.sums(terms.forward_ns),
        layers.sums(terms.backward_ns),
        layers.sums(terms.weight_gradient_ns),
    )
    update = model.formula.update_ns(np.zeros_like(compute[0]))
    times = model.formula.times(compute, update, micro_batch, 1, recompute)
    return times.forward, times.backward


class _Lists:
    """Lists of operators, or of tensors."""

    def __init__(self, members: Sequence[Sequence[int]]) -> None:
        self._all = np.array([member for each in members for member in each], np.int64)
        self._bounds = _prefix([len(each) for each in members])

    def sums(self, amounts: IntArray) -> IntArray:
        """Of each list the sum of the amounts of its members."""
        return np.diff(_prefix(amounts[self._all])[self._bounds])

    def largest(self, amounts: IntArray) -> IntArray:
        """Of each list, none of them empty, the largest amount of its members."""
        return np.maximum.reduceat(amounts[self._all], self._bounds[:-1])


def _prefix(values: "IntArray | list[int]") -> IntArray:
    return np.concatenate(([0], np.cumsum(values))).astype(np.int64)


def _weights(model: CostModel, terms: Terms, added: _AddedMemory, layers: Layers) -> list[dict[str, int]]:
    """For each layer the state bytes of its weights."""
    graph = model.graph
    names = [parameter.name for parameter in graph.parameters]
    state = dict(zip(names, added.state_bytes(terms.parameter_bytes).tolist(), strict=True))
    used = ({name for op in ops for name in graph.operators[op].parameters} for ops in layers.operators)
    return [{name: state[name] for name in each} for each in used]


def _model_inputs(model: CostModel, terms: Terms, layers: Layers) -> list[dict[str, int]]:
    """For each layer the inputs of the model that it reads and their bytes."""
    graph = model.graph
    sizes = {
        tensor.name: size
        for tensor, size in zip(graph.tensors, terms.tensor_bytes.tolist(), strict=True)
        if tensor.producer is None
    }
    read = ({name for op in ops for name in graph.operators[op].inputs} & sizes.keys() for ops in layers.operators)
    return [{name: sizes[name] for name in each} for each in read]


def _held_once(layers: Sequence[Mapping[str, int]]) -> tuple[list[int], list[list[tuple[int, int]]]]:
    """For each layer the bytes of all it uses, and (bytes, next user) of what a later layer uses too."""
    shared: list[list[tuple[int, int]]] = [[] for _ in layers]
    next_user: dict[str, int] = {}
    for layer in range(len(layers) - 1, -1, -1):
        for name, size in sorted(layers[layer].items()):
            if name in next_user:
                shared[layer].append((size, next_user[name]))
            next_user[name] = layer
    return [sum(used.values()) for used in layers], shared
