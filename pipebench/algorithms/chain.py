"""The integer chain that contiguous planners work on: what every run of layers costs at one micro-batch size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipebench.algorithms.linearise import Layers
from pipebench.costs.communicate import level_between, message_ns
from pipebench.costs.memory import weight_state_bytes
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray, whole_bytes
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Recompute

NO_LIMIT = 2**31


class ChainArrays(NamedTuple):
    """What kernels read, L layers: a stage of layers k … e-1 is the half-open interval [k, e), cut k lies
    before layer k.

    work: prefix sums of forward + backward ns, shape (L + 1,). held, saved: prefix sums of what a stage
    holds all the time and of what each live micro-batch adds, (L + 1,). cut_held: buffers at one side of a
    cut, (L + 1,), 0 at both ends. workspace: (L,), a stage needs the largest of its layers. cut_ns: transfer
    forward + gradient at a cut, (link levels, L + 1). hop: row of cut_ns for the link before the j-th stage
    from the end, (P,). shared_start, shared_bytes, shared_next: layer i lists at shared_start[i] …
    shared_start[i + 1] - 1 the bytes of weights it shares with layer shared_next, the next one to use them:
    a stage that holds both holds them once. inputs: bytes of the tensors that cross a cut, (L + 1,). read:
    prefix sums of the bytes of the model's inputs that each layer reads, (L + 1,); again_start, again_bytes,
    again_next list those that a later layer reads too, as shared_… do. recompute: a stage holds `saved` once,
    and `inputs` of its first cut and what it reads of the model's inputs for each live micro-batch.
    """

    work: IntArray
    held: IntArray
    saved: IntArray
    cut_held: IntArray
    workspace: IntArray
    cut_ns: IntArray
    hop: IntArray
    shared_start: IntArray
    shared_bytes: IntArray
    shared_next: IntArray
    inputs: IntArray
    read: IntArray
    again_start: IntArray
    again_bytes: IntArray
    again_next: IntArray
    recompute: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """A chain of layers in ns and bytes at one micro-batch size, one device a stage.

    Stage times, transfers and memory of every interval equal those of CostModel on the plan that places the
    stages on consecutive devices, the last stage on the last device (anywhere, on a cluster of one level).
    backward: prefix sums of the backward part of arrays.work, shape (L + 1,). cut_forward, cut_backward: the
    parts of arrays.cut_ns, same shape.
    """

    layers: Layers
    micro_batch: int
    recompute: Recompute
    arrays: ChainArrays
    one_level: bool
    backward: IntArray
    cut_forward: IntArray
    cut_backward: IntArray

    @property
    def length(self) -> int:
        """Number of layers."""
        return len(self.layers)

    def work_ns(self, first: int, end: int) -> int:
        """Forward + backward of layers first … end - 1."""
        return int(self.arrays.work[end] - self.arrays.work[first])

    def memory(self, first: int, end: int) -> tuple[int, int]:
        """Bytes of layers first … end - 1 on one device: held all the time, and for each live micro-batch."""
        arrays = self.arrays
        held = int(arrays.held[end] - arrays.held[first] + arrays.cut_held[first] + arrays.cut_held[end])
        held += int(arrays.workspace[first:end].max())
        for entry in range(arrays.shared_start[first], arrays.shared_start[end]):
            if arrays.shared_next[entry] < end:
                held -= int(arrays.shared_bytes[entry])
        saved = int(arrays.saved[end] - arrays.saved[first])
        if self.recompute == "none":
            return held, saved
        kept = int(arrays.inputs[first] + arrays.read[end] - arrays.read[first])
        for entry in range(arrays.again_start[first], arrays.again_start[end]):
            if arrays.again_next[entry] < end:
                kept -= int(arrays.again_bytes[entry])
        return held + saved, kept

    def most_live(self, first: int, end: int, memory: int) -> int:
        """How many live micro-batches of that stage fit in `memory` bytes; below 1: none."""
        held, each = self.memory(first, end)
        if held > memory:
            return 0
        return NO_LIMIT if each == 0 else min((memory - held) // each, NO_LIMIT)

    def items(self, bounds: tuple[int, ...]) -> IntArray:
        """Durations of stage, cut, stage, … of the stages [bounds[0], bounds[1]), …, shape (2n - 1,)."""
        stages = len(bounds) - 1
        items = np.empty(2 * stages - 1, np.int64)
        items[::2] = [self.work_ns(first, end) for first, end in pairwise(bounds)]
        for cut in range(1, stages):
            items[2 * cut - 1] = self.arrays.cut_ns[self.arrays.hop[stages - 1 - cut], bounds[cut]]
        return items


def build_chain(model: CostModel, layers: Layers, micro_batch: int, recompute: Recompute = "none") -> Chain:
    """The chain of these layers at a micro-batch size, on devices that are all of one type.

    async only: buffers are held all the time. Weights, saved bytes, workspace and messages are those of
    CostModel; weights that several layers use are charged once in each stage that uses them, and so are the
    model's inputs, which a stage that recomputes keeps.
    """
    cluster = model.problem.cluster
    times = model.times.at(micro_batch)
    costs = model.times.costs.operators
    forward, backward = (np.array([int(of[list(ops)].sum()) for ops in layers.operators]) for of in times)
    saved = [
        sum(whole_bytes(costs[op].saved_bytes_per_sample * micro_batch) for op in ops) for ops in layers.operators
    ]
    levels: list[LinkLevel] = []
    hop = [0] * cluster.size
    for position in range(cluster.size - 1):
        sender = cluster.size - 2 - position
        level = level_between(cluster, (sender,), (sender + 1,))
        if level not in levels:
            levels.append(level)
        hop[position] = levels.index(level)
    sent = [
        [(model.tensor_bytes(t, micro_batch), model.gradient_bytes(t, micro_batch)) for t in tensors]
        for tensors in ((), *layers.crossing, ())
    ]
    cut_forward, cut_backward = (
        np.array(
            [
                [sum(message_ns(level, pair[way], 1, 1) for pair in cut) for cut in sent]
                for level in levels or cluster.levels[:1]
            ],
            np.int64,
        )
        for way in (0, 1)
    )
    held, shared = _held_once(_weights(model, layers))
    read, again = _held_once(_model_inputs(model, layers, micro_batch))
    if recompute == "stage":
        backward = backward + forward
    arrays = ChainArrays(
        work=_prefix(forward + backward),
        held=_prefix(held),
        saved=_prefix(saved),
        cut_held=np.array([sum(map(sum, cut)) for cut in sent], np.int64),
        workspace=np.array([max(costs[op].workspace_bytes for op in ops) for ops in layers.operators], np.int64),
        cut_ns=cut_forward + cut_backward,
        hop=np.array(hop, np.int64),
        shared_start=_prefix([len(entries) for entries in shared]),
        shared_bytes=np.array([size for entries in shared for size, _ in entries], np.int64),
        shared_next=np.array([after for entries in shared for _, after in entries], np.int64),
        inputs=np.array([sum(size for size, _ in cut) for cut in sent], np.int64),
        read=_prefix(read),
        again_start=_prefix([len(entries) for entries in again]),
        again_bytes=np.array([size for entries in again for size, _ in entries], np.int64),
        again_next=np.array([after for entries in again for _, after in entries], np.int64),
        recompute=recompute == "stage",
    )
    return Chain(
        layers, micro_batch, recompute, arrays, len(levels) <= 1, _prefix(backward), cut_forward, cut_backward
    )


def _prefix(values: "IntArray | list[int]") -> IntArray:
    return np.concatenate(([0], np.cumsum(values))).astype(np.int64)


def _weights(model: CostModel, layers: Layers) -> list[dict[str, int]]:
    """For each layer the state bytes of its weights; whole elements, so that the state is linear in them."""
    graph, regime = model.graph, model.problem.regime
    used = ({name for op in ops for name in graph.operators[op].parameters} for ops in layers.operators)
    return [{name: weight_state_bytes(regime, graph.parameter_bytes[name], 1) for name in each} for each in used]


def _model_inputs(model: CostModel, layers: Layers, micro_batch: int) -> list[dict[str, int]]:
    """For each layer the inputs of the model that it reads and their bytes."""
    graph = model.graph
    inputs = {tensor.name for tensor in graph.tensors if tensor.producer is None}
    read = ({name for op in ops for name in graph.operators[op].inputs} & inputs for ops in layers.operators)
    return [{name: model.tensor_bytes(graph.tensor_index[name], micro_batch) for name in each} for each in read]


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
