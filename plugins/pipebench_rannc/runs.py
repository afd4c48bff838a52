"""What runs of consecutive blocks cost as stages, by the suite's cost model: all of them at once."""

from dataclasses import dataclass

import numpy as np
from pipebench.costs.arrays import all_reduces_ns, messages_ns, weight_states_bytes, whole_bytes_of

from pipebench.costs.communicate import ring_level
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import LinkLevel
from pipebench_rannc.blocks import Blocks
from pipebench_rannc.rectangles import held_once, leaving


@dataclass(frozen=True, slots=True)
class StageBytes:
    """Bytes of every run on one replica, shape (k + 1, k + 1), [i, j] for blocks i … j - 1.

    held: weights, gradients, optimizer state, workspace. saved: activations of one micro-batch. inputs: what
    recomputation keeps of one micro-batch. buffers: of messages in and out.
    """

    held: IntArray
    saved: IntArray
    inputs: IntArray
    buffers: IntArray

    def peak(self, live: int, recompute: bool) -> IntArray:
        """With so many micro-batches in flight."""
        if recompute:
            return self.held + live * self.inputs + self.saved + self.buffers
        return self.held + live * self.saved + self.buffers


class Runs:
    """Tables of all runs of the blocks. Times in ns, of one micro-batch on one of some replicas."""

    def __init__(self, model: CostModel, blocks: Blocks) -> None:
        self.model = model
        self.blocks = blocks
        graph, atoms = model.graph, blocks.atoms
        self.size = len(blocks)
        holders: list[set[int]] = [set() for _ in graph.operators]
        for block, members in enumerate(blocks.members):
            for atom in members:
                for op in (atoms.operators[atom], *atoms.constants[atom]):
                    holders[op].add(block)
        self._holders = [sorted(each) for each in holders]
        self._operators = held_once(self._holders, self.size)
        users: dict[str, set[int]] = {}
        for op, operator in enumerate(graph.operators):
            for name in operator.parameters:
                users.setdefault(name, set()).update(holders[op])
        weights = held_once([sorted(each) for each in users.values()], self.size)
        amounts = np.array([graph.parameter_bytes[name] for name in users], np.int64)
        self.weights = weights.table(amounts, self.size)
        self._workspace = self._most_workspace()
        crossing, made, read, entering = [], [], [], []
        for tensor, producer in enumerate(graph.producers):
            at = sorted({block for reader in graph.consumers[tensor] for block in holders[reader]})
            if producer < 0:
                entering.append((tensor, at))
            elif at and not graph.operators[producer].constant and at[-1] > self._holders[producer][0]:
                crossing.append(tensor)
                made.append(self._holders[producer][0])
                read.append(at)
        self._crossing = crossing
        self._received = held_once(read, self.size, made)
        self._sent = leaving(made, [at[-1] for at in read])
        self._model_inputs = [tensor for tensor, _ in entering]
        self._read = held_once([at for _, at in entering], self.size)
        self._times: dict[int, tuple[IntArray, IntArray]] = {}

    def times(self, samples: int) -> tuple[IntArray, IntArray]:
        """Forward and backward of every run at `samples` on each replica."""
        if samples not in self._times:
            forward, backward = self.model.times.at(samples)
            self._times[samples] = (
                self._operators.table(forward, self.size),
                self._operators.table(backward, self.size),
            )
        return self._times[samples]

    def stage_bytes(self, samples: int, replicas: int) -> StageBytes:
        """Memory at `samples` on each replica. replicas: those that share the optimizer's state, of all copies."""
        costs = self.model.times.costs.operators
        saved = whole_bytes_of(np.array([c.saved_bytes_per_sample * samples for c in costs]))
        one_way, both_ways = self._tensor_bytes(self._crossing, samples)
        inputs, _ = self._tensor_bytes(self._model_inputs, samples)
        received = self._received.table(one_way, self.size)
        return StageBytes(
            held=weight_states_bytes(self.model.problem.regime, self.weights, replicas) + self._workspace,
            saved=self._operators.table(saved, self.size),
            inputs=received + self._read.table(inputs, self.size),
            buffers=self._received.table(both_ways, self.size) + self._sent.table(both_ways, self.size),
        )

    def messages(
        self, micro_batch: int, replicas: int, level: LinkLevel, received: bool
    ) -> tuple[IntArray, IntArray]:
        """Ns of what a run sends forward, and of the gradients that come back for it.

        Neighbours are taken to have as many replicas. received: with what it receives, and the gradients that it
        sends back for it.
        """
        forward, both = self._tensor_bytes(self._crossing, micro_batch)
        sizes = (forward, both - forward)
        there, back = (messages_ns(level, size, replicas, replicas) for size in sizes)
        ways = (self._sent, self._received) if received else (self._sent,)
        return (
            sum((way.table(there, self.size) for way in ways), np.zeros_like(self.weights)),
            sum((way.table(back, self.size) for way in ways), np.zeros_like(self.weights)),
        )

    def all_reduce(self, replicas: int, copies: int, devices: int) -> IntArray:
        """Ns of the all-reduce of every run's gradients over its replicas in all copies.

        devices: of one copy; replicas are taken to start with its first, which is no slower than elsewhere.
        """
        highest = replicas - 1 + (copies - 1) * devices
        level = ring_level(self.model.problem.cluster, 0, highest)
        return all_reduces_ns(level, self.weights, replicas * copies)

    def _tensor_bytes(self, tensors: list[int], samples: int) -> tuple[IntArray, IntArray]:
        """Bytes of one message of each tensor, and of it and its gradient's."""
        forward = np.array([self.model.tensor_bytes(tensor, samples) for tensor in tensors], np.int64)
        backward = np.array([self.model.gradient_bytes(tensor, samples) for tensor in tensors], np.int64)
        return forward, forward + backward

    def _most_workspace(self) -> IntArray:
        costs = self.model.times.costs.operators
        most = np.zeros(self.size, np.int64)
        for op, at in enumerate(self._holders):
            for block in at:
                most[block] = max(most[block], costs[op].workspace_bytes)
        table = np.zeros((self.size + 1, self.size + 1), np.int64)
        for first in range(self.size):
            table[first, first + 1 :] = np.maximum.accumulate(most[first:])
        return table
