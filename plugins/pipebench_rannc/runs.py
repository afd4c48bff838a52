"""What runs of consecutive blocks cost as stages, by the suite's cost model: all of them at once."""

from pipebench.costs.formula import Memory
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.costs.rings import ring
from pipebench.costs.sums.intervals import Intervals
from pipebench.domain.cluster import LinkLevel
from pipebench.domain.recomputation import Recompute
from pipebench_rannc.blocks import Blocks


class BlockRuns:
    """Costs of every run of consecutive blocks as a stage: tables [i, j] for blocks i … j - 1, shape (k + 1, k +
    1).

    Times are in ns, of one micro-batch on one of its replicas.
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
        """Memory at `samples` on each replica.

        replicas: the devices that share the optimizer state, in all copies.
        """
        formula = self.model.formula
        content = self._intervals.holdings(self.model.terms(samples), recompute == "stage")
        return formula.memory(self._intervals.with_state(content, formula, replicas), recompute)

    def messages(
        self, micro_batch: int, replicas: int, level: LinkLevel, received: bool
    ) -> tuple[IntArray, IntArray]:
        """Time in ns of the tensors that a run sends, and of the gradients that come back for them.

        received: also count the tensors that it receives, and the gradients that it sends back for them.

        Neighbours are taken to have as many replicas.
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
        """Time in ns that every run takes once a mini-batch, over its replicas in all copies.

        devices: of one copy. Replicas are taken to start with its first device, which is no slower than any other
            place.
        """
        blocks = [(copy * devices, copy * devices + replicas - 1) for copy in range(copies)]
        problem, formula, everywhere = self.model.problem, self.model.formula, replicas * copies
        links = ring(problem.cluster, problem.regime, blocks, formula.holders(everywhere))
        return formula.update_ns(formula.reduce_ns(links, self.weights, everywhere), self.weights, everywhere)
