"""Memory of one device that runs a stage, in bytes, split by what it grows with."""

from dataclasses import dataclass

from pipebench.costs.quantise import whole_bytes
from pipebench.domain.problem import Regime
from pipebench.domain.profile import ELEMENT_BYTES

STATE_BYTES = {"adam": 8, "sgd": 4, "none": 0}
MASTER_BYTES = 4


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Bytes on each device of a stage.

    held: weight versions, gradients, optimizer state, fixed bytes. per_micro_batch: saved by each live
    micro-batch. while_live: transfer buffers (async: always held) and, with recomputation, one full set of
    activations, while at least one micro-batch is live. workspace: scratch of the running operator.
    """

    held: int
    per_micro_batch: int
    while_live: int
    workspace: int

    def at(self, live: int) -> int:
        """Bytes with `live` micro-batches in flight, workspace left out."""
        return self.held + live * self.per_micro_batch + (self.while_live if live > 0 else 0)

    def peak(self, live: int) -> int:
        """Bytes at the peak, for a device that runs this stage alone."""
        return self.at(live) + self.workspace


def weight_state_bytes(regime: Regime, parameter_bytes: int, replicas: int) -> int:
    """Weight versions, gradient and optimizer state of `parameter_bytes` of weights on one device.

    sync: 1 version + 1 gradient; async: 2 + 1 (MadPipe section 4.1: 3W). The gradient has the regime's
    gradient precision. Optimizer state is sharded over the replicas, those of all pipelines, with zero1.
    """
    versions = 1 if regime.mode == "sync" else 2
    elements = parameter_bytes / ELEMENT_BYTES[regime.precision]
    each = STATE_BYTES[regime.optimizer]
    if regime.optimizer != "none" and regime.precision != "fp32":
        each += MASTER_BYTES
    sharers = replicas if regime.optimizer_sharding == "zero1" else 1
    gradient = whole_bytes(elements * ELEMENT_BYTES[regime.gradient_precision or regime.precision])
    return versions * parameter_bytes + gradient + whole_bytes(elements * each / sharers)
