"""MadPipe's Algorithm 1 on contiguous allocations, and the exact search that closes what it leaves open."""

from collections.abc import Callable
from dataclasses import dataclass

from pipebench.algorithms.chain import Chain
from pipebench.algorithms.contiguous import (
    Partition,
    Search,
    StageRange,
    contiguous_optimum,
    longest_period,
    partition_at,
    shortest_period,
)
from pipebench_madpipe.allocation import madpipe_dp


@dataclass(frozen=True, slots=True)
class Bracket:
    """What Algorithm 1 knows after its iterations: the best allocation, and a period that none is below.

    upper_ns: only shorter periods are still of interest.
    """

    best: Partition | None
    lower_ns: int
    upper_ns: int
    probes: int
    labels: int


def algorithm_1(
    chain: Chain,
    stages: StageRange,
    memory: int,
    iterations: int,
    below_ns: int | None,
    stop: Callable[[], bool] = lambda: False,
) -> Bracket:
    """MadPipe, Algorithm 1, with lines 2 and 7 corrected, on integers.

    A load T_i above the target means that no allocation reaches the target; one at or below it means that
    none beats T_i, and that this one runs at max(T_i, target) or faster under 1F1B*. The paper's ub takes
    that maximum; here it is the allocation's shortest period.
    """
    lower = shortest_period(chain, stages)
    upper = longest_period(chain) + 1 if below_ns is None else below_ns
    best: Partition | None = None
    probes = labels = 0
    target = lower
    while probes < iterations and lower < upper and not stop():
        load, made, bounds = madpipe_dp(chain.arrays, target, stages.least, stages.most, memory, upper)
        probes += 1
        labels += made
        lower = max(lower, load if load <= target else target + 1)
        if load < upper:
            found = partition_at(chain, tuple(map(int, bounds)), memory)
            if found is not None and found.period_ns < upper:
                best, upper = found, found.period_ns
        target = (lower + upper) // 2
    return Bracket(best, min(lower, upper), upper, probes, labels)


def madpipe_search(
    chain: Chain,
    stages: StageRange,
    memory: int,
    iterations: int,
    below_ns: int | None,
    count: Callable[[str, int], None],
    stop: Callable[[], bool],
) -> Search:
    """The best contiguous allocation: Algorithm 1, then an exact bisection of the bracket that remains.

    Counters: dp_probes and labels of Algorithm 1, exact_probes and states of the exact search.
    """
    bracket = algorithm_1(chain, stages, memory, iterations, below_ns, stop)
    closing = contiguous_optimum(
        chain, stages, memory, lower_ns=bracket.lower_ns, below_ns=bracket.upper_ns, stop=stop
    )
    count("dp_probes", bracket.probes)
    count("labels", bracket.labels)
    count("exact_probes", closing.probes)
    count("states", closing.states)
    return Search(
        closing.best or bracket.best,
        closing.lower_ns,
        bracket.probes + closing.probes,
        bracket.labels + closing.states,
    )
