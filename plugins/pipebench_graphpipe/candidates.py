"""Which of the partitions that were found becomes the plan."""

from dataclasses import dataclass

from pipebench.algorithms.score import mini_batch_ns
from pipebench.costs.estimate import estimate
from pipebench.domain.plan import Plan
from pipebench_graphpipe.assembly import plan_of
from pipebench_graphpipe.search import Search
from pipebench_graphpipe.target_search import Partition

REFINED = 2
"""Micro-batch sizes, the best ones, at which other partitions as good are looked for."""
SIMULATED_NEAR = 3
SIMULATED_RELAXED = 12
"""How many of the other partitions, those that the closed form likes best, are simulated."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A partition as a plan. time_ns: of a mini-batch, by the objective."""

    partition: Partition
    plan: Plan
    time_ns: int

    @property
    def order(self) -> tuple[int, int]:
        """What comes first is better."""
        return self.time_ns, self.partition.costs.micro_batch

    @property
    def sample_ns(self) -> float:
        """Time per sample of the bottleneck stage."""
        return self.partition.bottleneck_ns / self.partition.costs.micro_batch


def best_candidate(search: Search, memory_bytes: int) -> Candidate | None:
    """The best over all micro-batch sizes; None when nothing fits in memory.

    Sizes come in the order of what they could do at best, and end where that is worse than what was found.
    """
    context, options = search.context, search.options
    found: list[Candidate] = []
    relaxed: list[Partition] = []
    for done, (micro_batch, least_ns) in enumerate(search.least_ns.items()):
        if not found:
            context.check_deadline()
        elif least_ns > found[0].time_ns:
            context.count("sizes_left_out", len(search.least_ns) - done)
            break
        elif context.out_of_time():
            return found[0]
        context.report(done / len(search.least_ns), f"micro-batch {micro_batch}")
        partition = search.smallest(micro_batch, memory_bytes)
        if partition is None:
            continue
        made = _candidate(search, partition)
        if made is not None:
            found = sorted((*found, made), key=lambda candidate: candidate.order)
        if options.objective == "simulated":
            relaxed += search.relaxed(partition, memory_bytes)
    if options.objective == "tps" or not found:
        return found[0] if found else None
    near = [
        partition
        for candidate in (found[:REFINED] if options.near else ())
        if len(candidate.plan.stages) > 1 and not context.out_of_time()
        for partition in search.near(candidate.partition, memory_bytes)
    ]
    for partitions, most in ((near, SIMULATED_NEAR), (relaxed, SIMULATED_RELAXED)):
        found += _simulated(search, partitions, most)
    return min(found, key=lambda candidate: candidate.order)


def _simulated(search: Search, partitions: list[Partition], most: int) -> list[Candidate]:
    """Those that the closed form likes best."""
    problem, context = search.problem, search.context
    plans = [(partition, plan_of(problem, partition, search.recompute)) for partition in partitions]
    found = []
    for partition, plan in sorted(plans, key=lambda pair: estimate(problem, pair[1]))[:most]:
        if context.out_of_time():
            break
        time_ns = mini_batch_ns(problem, plan, context)
        if time_ns is not None:
            found.append(Candidate(partition, plan, time_ns))
    return found


def _candidate(search: Search, partition: Partition) -> Candidate | None:
    problem = search.problem
    plan = plan_of(problem, partition, search.recompute)
    if search.options.objective == "tps":
        return Candidate(partition, plan, partition.costs.micro_batches * partition.bottleneck_ns)
    time_ns = mini_batch_ns(problem, plan, search.context)
    return None if time_ns is None else Candidate(partition, plan, time_ns)
