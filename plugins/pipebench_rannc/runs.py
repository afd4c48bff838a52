"""What runs of consecutive blocks cost as stages, by the suite's cost model: all of them at once."""

from pipebench.costs.formula import Memory
from pipebench.costs.intervals import Intervals
from pipebench.costs.messages import ring_level
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.problem import Recompute
from pipebench_rannc.blocks import Blocks


class BlockRuns:
    """Tables of all runs of the blocks, shape (k + 1, k + 1), [i, j] for blocks i … j - 1.

    Times are in ns, of one micro-batch on one of some replicas.
    """

    def __init__(self, model: CostModel, blocks: Blocks) -> None:
        self.model = model
        self.blocks = blocks
        self.size = len(blocks)
        atoms = blocks.atoms
        groups = [
            [op for atom in members for op in (atoms.operators[atom], *atoms.constants[atom])]
            for members in blocks.members
        ]
        self._intervals = Intervals(model.graph, groups)
        self.weights = self._intervals.parameter_bytes
        """Bytes of the weights of every run."""
        self._times: dict[int, tuple[IntArray, IntArray]] = {}

    def times(self, samples: int) -> tuple[IntArray, IntArray]:
        """Forward and backward of every run at `samples` on each replica."""
        if samples not in self._times:
            forward, backward, _ = self._intervals.compute_ns(self.model.terms(samples))
            self._times[samples] = forward, backward
        return self._times[samples]

    def memory(self, samples: int, replicas: int, recompute: Recompute) -> Memory[IntArray]:
        """Memory at `samples` on each replica. replicas: those that share the optimizer's state, of all copies."""
        formula = self.model.formula
        content = self._intervals.holdings(self.model.terms(samples), recompute == "stage")
        return formula.memory(self._intervals.with_state(content, formula, replicas), recompute)

    def messages(
        self, micro_batch: int, replicas: int, level: LinkLevel, received: bool
    ) -> tuple[IntArray, IntArray]:
        """Ns of what a run sends forward, and of the gradients that come back for it.

        Neighbours are taken to have as many replicas. received: with what it receives, and the gradients that it
        sends back for it.
        """
        terms, formula = self.model.terms(micro_batch), self.model.formula
        there, back = (
            formula.message_ns(level, sizes, replicas, replicas)
            for sizes in (terms.tensor_bytes, terms.gradient_bytes)
        )
        if not received:
            return self._intervals.outgoing_sums(there), self._intervals.outgoing_sums(back)
        return (
            self._intervals.outgoing_sums(there) + self._intervals.incoming_sums(there),
            self._intervals.outgoing_sums(back) + self._intervals.incoming_sums(back),
        )

    def update_ns(self, replicas: int, copies: int, devices: int) -> IntArray:
        """Ns of what every run does once a mini-batch, over its replicas in all copies.

        devices: of one copy; replicas are taken to start with its first, which is no slower than elsewhere.
        """
        highest = replicas - 1 + (copies - 1) * devices
        level = ring_level(self.model.problem.cluster, 0, highest)
        formula = self.model.formula
        return formula.update_ns(formula.all_reduce_ns(level, self.weights, replicas * copies))
