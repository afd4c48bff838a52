"""Which stages wait for which, and which micro-batches of them cover the same samples."""

import numpy as np

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench.domain.plan import Plan


def waiting_stages(model: CostModel, plan: Plan) -> list[tuple[int, int]]:
    """Pairs (before, after), ascending: F of `after` waits for F of `before`, B the other way round.

    From tensors that cross (hop by hop when relayed) and from order edges.
    """
    return sorted({(m.source, m.target) for m in model.messages(plan)} | set(plan.order_edges))


def overlapping(first: int, second: int, samples: int) -> tuple[IntArray, IntArray]:
    """Micro-batches (i of size `first`, j of size `second`) that share a sample, all such pairs.

    Every run of samples between two boundaries of either size belongs to one pair.
    """
    starts = np.union1d(np.arange(0, samples, first), np.arange(0, samples, second))
    return starts // first, starts // second
