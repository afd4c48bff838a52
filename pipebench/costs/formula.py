"""The formulas of the cost model: the time and the memory of a stage, from sums over its content.

Each formula is written once. It takes integers (one stage) or arrays of one shape (many stages at once).
`CostModel` applies the formulas to the stages of a plan. Planners apply them to every stage that they consider.
To change the memory model or the time model, change this file.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from pipebench.costs.quantise import FloatArray, IntArray, nanoseconds, whole_bytes
from pipebench.costs.rings import Ring
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Regime
from pipebench.domain.profile import ELEMENT_BYTES
from pipebench.domain.recomputation import Recompute

Amount = TypeVar("Amount", int, IntArray)
Bytes = TypeVar("Bytes", int, IntArray, FloatArray)
"""Of one micro-batch; searches that never round to whole bytes keep fractions."""

STATE_BYTES = {"adam": 8, "sgd": 4, "none": 0}
"""Optimizer state for each weight element."""
MASTER_BYTES = 4
"""Master copy of each weight element below fp32, where there is an optimizer."""
ENDLESS = 2**40
"""More live micro-batches than any pipeline holds."""


@dataclass(frozen=True, slots=True)
class Holdings(Generic[Amount]):
    """The content of a stage, in bytes on one device. Amounts that grow with samples are those of one micro-batch.

    state_bytes: weights, gradients and optimizer state; each parameter counts once (`Formula.state_bytes`).
    saved_bytes: what the operators save for their backwards.
    input_bytes: tensors that the stage receives and inputs of the model that it reads; each counts once.
    buffer_bytes: one message and one gradient message of each tensor that crosses into or out of the stage.
    workspace_bytes: scratch memory of the operator that needs the most.
    fixed_bytes: what alternatives hold permanently besides weights.
    transient_bytes: what an alternative holds while a micro-batch is live; the largest of the stage.
    unit_bytes: weights of the operator that has the most, where replicas share them out; else 0.
    """

    state_bytes: Amount
    saved_bytes: Amount
    input_bytes: Amount
    buffer_bytes: Amount
    workspace_bytes: Amount
    fixed_bytes: Amount
    transient_bytes: Amount
    unit_bytes: Amount


@dataclass(frozen=True, slots=True)
class Times(Generic[Amount]):
    """Times of one micro-batch of a stage, in ns.

    forward: the forward.
    backward: the full backward, recomputation included; in async also the share of the update.
    weight_gradient: the part of the backward that a split backward may run later.
    all_reduce: the task that the stage runs once a mini-batch (sync); 0 in async.
    """

    forward: Amount
    backward: Amount
    weight_gradient: Amount
    all_reduce: Amount

    @property
    def period(self) -> Amount:
        """Forward and backward together."""
        return self.forward + self.backward


@dataclass(frozen=True, slots=True)
class Memory(Generic[Amount]):
    """Bytes on each device of a stage, by what they grow with.

    held: weight versions, gradients, optimizer state and fixed bytes; in async also the transfer buffers.
    per_micro_batch: bytes for each live micro-batch.
    while_live: bytes while at least one micro-batch is live: in sync the transfer buffers; where the stage
    recomputes also one full set of activations.
    workspace: scratch memory of the running operator, and weights that are gathered for it.
    """

    held: Amount
    per_micro_batch: Amount
    while_live: Amount
    workspace: Amount

    @property
    def once(self) -> Amount:
        """Bytes of a device that runs this stage, without what each live micro-batch adds."""
        return self.held + self.while_live + self.workspace

    def at(self, live: int) -> Amount:
        """Bytes with `live` micro-batches in flight, without workspace."""
        held = self.held + live * self.per_micro_batch
        return held + self.while_live if live > 0 else held

    def peak(self, live: int) -> Amount:
        """Bytes at the peak, for a device that runs this stage alone."""
        return self.at(live) + self.workspace

    def most_live(self, limit_bytes: int) -> Amount:
        """The largest number of live micro-batches that fits in `limit_bytes` on a device that runs this stage
        alone.

        0: not even one fits. ENDLESS: a live micro-batch adds nothing.
        """
        return _most(limit_bytes - self.once, self.per_micro_batch)


StageTimes = Times[int]
StageMemory = Memory[int]


class Formula:
    """The formulas under a regime and a mini-batch; each takes integers, or arrays of one shape."""

    def __init__(self, regime: Regime, mini_batch: int) -> None:
        self.regime = regime
        self.mini_batch = mini_batch

    @staticmethod
    def message_ns(level: LinkLevel, bytes_sent: Amount, senders: int, receivers: int) -> Amount:
        """The time of one message in ns: latency + bytes / (min(senders, receivers) x bandwidth).

        The result is rounded half-even. A message of 0 bytes takes no time.
        """
        seconds = level.latency_s + bytes_sent / (min(senders, receivers) * level.bandwidth_bytes_s)
        return _unless_empty(bytes_sent, nanoseconds(seconds))

    @staticmethod
    def all_reduce_ns(level: LinkLevel, bytes_reduced: Amount, devices: float, shards: int = 1) -> Amount:
        """Ring all-reduce: 2(d-1) steps of bytes/d and one latency each (Patarasuk and Yuan 2009, section 3).

        shards: equal parts of the bytes, each of which has a ring of its own.
        """
        steps = 2 * (devices - 1)
        seconds = steps * (level.latency_s + bytes_reduced / shards / devices / level.bandwidth_bytes_s)
        return _unless_empty(bytes_reduced, nanoseconds(seconds))

    @staticmethod
    def pair_ns(forward_ns: Amount, backward_ns: Amount, overlap: float) -> Amount:
        """The time of a forward and a backward (or input gradient) that a device runs at once, in ns.

        It is F + B - overlap x min(F, B), so it lies between max(F, B) and F + B. The hidden part is rounded
        half-even.
        """
        return forward_ns + backward_ns - _share_of(_smaller(forward_ns, backward_ns), overlap)

    def holders(self, replicas: int) -> int:
        """Ranks that hold the same weights, of so many replicas. They reduce gradients and share out state."""
        return replicas * self.regime.context_ranks

    @cached_property
    def of_ranks(self) -> "Formula":
        """The same formulas where what they call replicas are single ranks that hold the same weights."""
        regime = self.regime
        if regime.context_ranks == 1:
            return self
        return Formula(replace(regime, context_parallel=UNSET), self.mini_batch)

    def gradient_bytes(self, parameter_bytes: Amount) -> Amount:
        """Bytes of the gradients of `parameter_bytes` of weights, in the regime's gradient precision."""
        regime = self.regime
        precision = regime.gradient_precision or regime.precision
        if precision == regime.precision:
            return parameter_bytes
        return whole_bytes(parameter_bytes / ELEMENT_BYTES[regime.precision] * ELEMENT_BYTES[precision])

    def reduce_ns(self, ring: Ring, parameter_bytes: Amount, replicas: int) -> Amount:
        """The all-reduce over the ranks of all replicas (`holders`) of the gradients of `parameter_bytes` of
        weights, in ns.

        Where a framework's step is priced, gradients are sent at their own precision, else at that of the weights.
        With zero1 such a step scatters gradients and gathers weights, the two halves of the ring, each at its own
        precision. With zero3 this is a part of each micro-batch (`exchange_ns`) and takes nothing here.
        Where groups of ranks share out a copy each, this runs inside a group, and each rank reduces the gradients
        of its share with the other groups (Megatron-LM, `num_distributed_optimizer_instances`).
        """
        if self.regime.shards_weights:
            return 0 * parameter_bytes
        shards = self.regime.shards(self.holders(replicas))
        reduced = sent = parameter_bytes if self.regime.step is None else self.gradient_bytes(parameter_bytes)
        if self.regime.step is not None and self.regime.shards_optimizer:
            sent = whole_bytes((sent + parameter_bytes) / 2)
        inside = self.all_reduce_ns(ring.inside, sent, shards)
        return inside + self._between_ns(ring, reduced, replicas)

    def _between_ns(self, ring: Ring, gradient_bytes: Amount, replicas: int) -> Amount:
        """The all-reduce of the gradients of a rank's share with the groups that hold another copy, in ns."""
        ranks = self.holders(replicas)
        shards = self.regime.shards(ranks)
        if shards == ranks:
            return 0 * gradient_bytes
        return self.all_reduce_ns(ring.between, gradient_bytes, ranks / shards, shards)

    def exchange_ns(self, ring: Ring, parameter_bytes: Amount, replicas: int) -> tuple[Amount, Amount]:
        """What the replicas exchange beside the forward and the backward of a micro-batch with zero3, in ns.

        The forward gathers `parameter_bytes` of weights, the backward gathers them again and scatters their
        gradients (Zhao et al. 2023, PyTorch FSDP, section 3). Each is half of a ring. Both are 0 without zero3.
        Where groups of ranks share out a copy each, this runs inside a group, and the backward reduces the
        gradients of a rank's share with the other groups, in each micro-batch: torchtitan leaves
        `set_requires_all_reduce` of PyTorch's FSDP as it is (b5bcd76c6, trainer.py).
        """
        if not self.regime.shards_weights:
            return 0 * parameter_bytes, 0 * parameter_bytes
        shards, gradients = self.regime.shards(self.holders(replicas)), self.gradient_bytes(parameter_bytes)
        gathered = (self.all_reduce_ns(ring.inside, parameter_bytes, shards) + 1) // 2
        scattered = (self.all_reduce_ns(ring.inside, gradients, shards) + 1) // 2
        return gathered, gathered + scattered + self._between_ns(ring, gradients, replicas)

    def update_ns(self, reduce_ns: Amount, parameter_bytes: "Amount | int" = 0, replicas: int = 1) -> Amount:
        """The time of the update that a stage runs once a mini-batch, in ns.

        reduce_ns: the all-reduce of its gradients. parameter_bytes: of weights on one device of the stage.
        Where the problem prices a framework's step, the backward hides a share of the all-reduce (rounded
        half-even). The optimizer passes over the elements that the device updates (with zero1 and zero3 a share of
        its group), and a few times over all gradients that it holds (with zero3 a share). In sync alone.
        """
        step = self.regime.step
        if step is None or self.regime.mode == "async":
            return reduce_ns
        shards = self.regime.shards(self.holders(replicas))
        updated = shards if self.regime.shards_optimizer else 1
        reduced = shards if self.regime.shards_weights else 1
        each_s = step.optimizer_s_per_element / updated + step.gradient_s_per_element / reduced
        elements = parameter_bytes / ELEMENT_BYTES[self.regime.precision]
        return self.exposed_reduce_ns(reduce_ns) + nanoseconds(elements * each_s)

    def exposed_reduce_ns(self, reduce_ns: Amount) -> Amount:
        """The part of an all-reduce of gradients that the backward does not hide, in ns."""
        step = self.regime.step
        return reduce_ns if step is None else reduce_ns - _share_of(reduce_ns, step.reduce_overlap)

    def update_share_ns(self, update_ns: Amount, micro_batch: int, lanes: int = 1) -> Amount:
        """The share of one micro-batch in the update, in ns, rounded up.

        lanes: how many lanes share the micro-batches of a mini-batch: pipelines, times replicas in turn.
        """
        return -(-update_ns * micro_batch * lanes // self.mini_batch)

    @staticmethod
    def pace_ns(load_ns: Amount, turns: int) -> Amount:
        """The time for each micro-batch in ns, rounded up, of what is busy for `load_ns` with every turns-th one.

        A device whose `turns` replicas take micro-batches in turn, or a link between two such devices.
        """
        return -(-load_ns // turns)

    def times(
        self,
        compute_ns: tuple[Amount, Amount, Amount],
        update_ns: Amount,
        micro_batch: int,
        lanes: int,
        recompute: Recompute,
        exchange_ns: "tuple[Amount, Amount] | tuple[int, int]" = (0, 0),
    ) -> Times[Amount]:
        """Times of one micro-batch of a stage.

        compute_ns: forward, backward and weight gradient, summed over the operators.
        lanes: how many lanes share the micro-batches of a mini-batch.
        recompute: with `stage` the backward runs the forward again.
        exchange_ns: what replicas exchange beside the forward and the backward (`exchange_ns`), on a stream of its
        own that runs ahead of the computation: the longer of both counts.
        In async each backward is followed by its share of the update.
        """
        forward, backward, weight_gradient = compute_ns
        if recompute == "stage":
            backward = backward + forward
        if self.regime.shards_weights:
            forward, backward = _larger(forward, exchange_ns[0]), _larger(backward, exchange_ns[1])
        if self.regime.mode == "async":
            backward = backward + self.update_share_ns(update_ns, micro_batch, lanes)
            update_ns = 0 * update_ns
        return Times(forward, backward, _smaller(weight_gradient, backward), update_ns)

    def state_bytes(self, parameter_bytes: Amount, replicas: int) -> Amount:
        """Weight versions, gradient and optimizer state for `parameter_bytes` of weights on one device.

        sync: 1 version + 1 gradient. async: 2 versions + 1 gradient (MadPipe section 4.1: 3W).
        The gradient has the regime's gradient precision.
        With zero1 the optimizer state is sharded over the ranks (`holders`) of `replicas`, those in all copies, or
        over those of a group (`Regime.sharding_ranks`); with zero3 all is.
        """
        regime = self.regime
        versions = 1 if regime.mode == "sync" else 2
        each = STATE_BYTES[regime.optimizer]
        if regime.optimizer != "none" and regime.precision != "fp32":
            each += MASTER_BYTES
        elements = parameter_bytes / ELEMENT_BYTES[regime.precision]
        whole = versions * parameter_bytes + self.gradient_bytes(parameter_bytes)
        shards = regime.shards(self.holders(replicas))
        if regime.shards_weights:
            return whole_bytes((whole + elements * each) / shards)
        return whole + whole_bytes(elements * each / (shards if regime.shards_optimizer else 1))

    def gathered_bytes(self, unit_bytes: Amount) -> Amount:
        """Bytes that a device holds of what its replicas share, while a task runs. unit_bytes: of one operator.

        The weights of the operator that runs and of the next one, and one gradient that is not scattered yet: as
        it is computed, and once more where it is scattered at another precision.
        """
        if not self.regime.shards_weights:
            return 0 * unit_bytes
        sent = self.gradient_bytes(unit_bytes)
        same = self.regime.gradient_precision in (None, self.regime.precision)
        return 2 * unit_bytes + sent if same else 3 * unit_bytes + sent

    def memory(self, content: Holdings[Amount], recompute: Recompute) -> Memory[Amount]:
        """Memory of one device of a stage.

        Transfer buffers are reserved permanently in async, and while a micro-batch is live in sync.
        recompute: with `stage` each live micro-batch keeps only the inputs of the stage; one full set of
        activations is held while any micro-batch is live.
        """
        held = content.fixed_bytes + content.state_bytes
        kept, while_live = content.saved_bytes, content.transient_bytes
        if recompute == "stage":
            kept, while_live = content.input_bytes, while_live + content.saved_bytes
        if self.regime.mode == "async":
            held = held + content.buffer_bytes
        else:
            while_live = while_live + content.buffer_bytes
        workspace = content.workspace_bytes + self.gathered_bytes(content.unit_bytes)
        return Memory(held, self.live_bytes(kept), while_live, workspace)

    def live_bytes(self, kept_bytes: Bytes) -> Bytes:
        """Bytes that a stage holds for each live micro-batch. kept_bytes: what its operators keep of one."""
        return kept_bytes

    def every_stage(self, replicas: int = 1, recompute: Recompute = "none") -> Memory[int]:
        """The memory of a stage without content: what every stage holds."""
        return self.memory(Holdings(self.state_bytes(0, replicas), 0, 0, 0, 0, 0, 0, 0), recompute)


def _unless_empty(amount: Amount, value: Amount) -> Amount:
    if isinstance(amount, np.ndarray):
        return np.where(amount == 0, 0, value)
    return value if amount else 0


def _most(room: Amount, each: Amount) -> Amount:
    if isinstance(room, np.ndarray):
        return np.where(room >= 0, np.where(each > 0, room // np.maximum(each, 1), ENDLESS), 0)
    if room < 0:
        return 0
    return room // each if each else ENDLESS


def _share_of(amount: Amount, share: float) -> Amount:
    """The share of an amount, rounded half-even."""
    if isinstance(amount, np.ndarray):
        hidden: IntArray = np.rint(share * amount).astype(np.int64)
        return hidden
    return round(share * amount)


def _larger(one: Amount, other: "Amount | int") -> Amount:
    if isinstance(one, np.ndarray):
        return np.maximum(one, other)
    return max(one, other)


def _smaller(one: Amount, other: Amount) -> Amount:
    if isinstance(one, np.ndarray):
        return np.minimum(one, other)
    return min(one, other)
