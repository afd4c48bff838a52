"""How many samples each stage keeps in flight under kFkB on a graph of stages."""

from collections.abc import Sequence

from pipebench.domain.topology import topological_order


def in_flight(
    micro_batch: Sequence[int],
    k: Sequence[int],
    edges: Sequence[tuple[int, int]],
    mini_batch: int,
    hop: int = 1,
    turns: Sequence[int] = (),
) -> list[int]:
    """Samples whose forward is done and backward is not, at most, for each stage; a multiple of its micro-batch.

    A stage without successors keeps k of its micro-batches. Any other stage i keeps, for the most demanding
    successor j, s_j + hop * max(k_i b_i, b_j) + max(0, b_i - b_j), rounded up to a multiple of b_i. Nobody
    keeps more than the mini-batch. r replicas in turn work on r micro-batches at once: k_i is k_i r_i for them,
    and all keep equally many: the sum is rounded up to a multiple of r_i b_i. With less, replicas that keep more
    than their share stop the stages before them (a chain of 16, 4, 4, 6, 8, 5, 5, 10 ran 1.13 times as long).

    micro_batch: samples b. edges: pairs of stages (before, after), data and order edges alike. hop: micro-batches
    that a stage is ahead of the next one; 1 as GraphPipe has it (section 4.3, Figure 5), 2 hides transfers.
    turns: replicas of each stage that take micro-batches in turn; default 1 of each.
    The paper's table of configurations is not public; this form keeps the paper's values (10, 8, 4 for
    b = 1, 2, 4) and let every chain and Y-join that was tried run at the pace of its slowest stage. Where k
    varies across a join a plan may need more than this.

    Raises InvalidValue with the cycle when the edges have one.
    """
    after: list[list[int]] = [[] for _ in micro_batch]
    for before, successor in edges:
        after[before].append(successor)
    kept = [0] * len(micro_batch)
    for i in reversed(topological_order(after, [f"stage {i}" for i in range(len(micro_batch))])):
        size = micro_batch[i]
        together = size * (turns[i] if turns else 1)
        own = k[i] * together
        wanted = [kept[j] + hop * max(own, micro_batch[j]) + max(0, size - micro_batch[j]) for j in after[i]]
        samples = -(-max(wanted, default=own) // together) * together
        kept[i] = min(samples, mini_batch)
    return kept
