"""Lower bound on the period of contiguous plans where the two transfers of a cut may overlap."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from pipebench.algorithms.chain import Chain
from pipebench.algorithms.contiguous import StageRange, decide, shortest_period
from pipebench.algorithms.linearise import Layers
from pipebench.costs.communicate import level_between
from pipebench.costs.model import CostModel

COARSE = 2048
"""The bound is closed in on to one part in so many."""


def take_turns(model: CostModel, layers: Layers, micro_batch: int) -> bool:
    """Whether both transfers of every cut occupy one link, so that the optimum of 1F1B* is a bound.

    Not on links that carry both directions at once, and not where one of the two takes no time (a tensor
    without a gradient): it finds its way past the other one, which 1F1B* does not count on. What takes no time on
    the fastest links may take some on others: every two neighbours are looked at.
    """
    cluster = model.problem.cluster
    fastest = replace(
        cluster.levels[0],
        latency_s=min(level.latency_s for level in cluster.levels),
        bandwidth_bytes_s=max(level.bandwidth_bytes_s for level in cluster.levels),
    )
    between = [level_between(cluster, (device,), (device + 1,)) for device in range(cluster.size - 1)]
    terms = model.terms(micro_batch)
    for level in dict.fromkeys((fastest, *between)):
        there, back = (
            model.formula.message_ns(level, sizes, 1, 1) for sizes in (terms.tensor_bytes, terms.gradient_bytes)
        )
        for crossing in map(list, layers.crossing):
            if there[crossing].any() != back[crossing].any():
                return False
    return cluster.link_mode == "half"


def both_ways_bound_ns(
    mini_batch: int,
    chains: Sequence[Chain],
    stages: StageRange,
    memory: int,
    best_ns: int,
    count: Callable[[str, int], None],
    stopped: Callable[[], bool],
) -> int | None:
    """Nanoseconds of a mini-batch that no plan over any of the chains is below; at most best_ns, which one takes.

    None when `stopped` said so before it was proven. chains: one for each micro-batch size. Not for link mode
    `delay`, where tensors of one cut travel at the same time.

    Proof. Take any pattern of period T in which forwards and backwards are not interrupted, each micro-batch
    passes the stages of a chain in order, and each direction of a link carries one transfer at a time. Let V be
    the time from the end of a micro-batch's forward on a stage to the start of its backward there, u = f + b the
    stage's work. Modulo T both share the device, so the time from the start of the one to the end of the other
    is at least V (+) u (MadPipe section 4.2.2): V + u, or ceil(V / T) T + u where that would pass the next
    multiple of T; and the stage has as many live micro-batches as 1F1B* counts. At the cut in front of it the
    two transfers, c in all, follow one another too, but share no resource: they add c to that time and nothing
    else, and the longer one, at least c / 2, is at most T. So `decide` with both_ways finds the least delay
    that any pattern can have, delays only grow with those behind them, and a period at which it finds no
    partition within the memory is below that of every pattern.
    """
    bound_ns = best_ns
    for chain in chains:
        repeats = mini_batch // chain.micro_batch
        high = -(-bound_ns // repeats)
        low = min(shortest_period(chain, stages), high)
        probe = high - 1
        step = max(1, high // COARSE)
        while high - low > high // COARSE:
            if stopped():
                return None
            fits, states, _ = decide(chain.arrays, probe, stages.least, stages.most, memory, True)
            count("probes", 1)
            count("states", states)
            if fits:
                high = probe
            else:
                low = probe + 1
            probe = max(low, high - step) if low <= high - step else (low + high - 1) // 2
            step *= 2
        bound_ns = min(bound_ns, repeats * low)
    return bound_ns
