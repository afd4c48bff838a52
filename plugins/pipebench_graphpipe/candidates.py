"""Which of the partitions that were found becomes the plan: by the paper's rule, or the best of many."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipebench.algorithms.score import mini_batch_ns
from pipebench.costs.estimate import estimate
from pipebench.domain.plan import Plan
from pipebench_graphpipe.assembly import assembled, plan_of
from pipebench_graphpipe.mixed_targets import mixed_drafts
from pipebench_graphpipe.rivals import rival_plans
from pipebench_graphpipe.search import Search
from pipebench_graphpipe.target_search import Partition
from pipebench_graphpipe.warm_up import fits, runs_ahead

REFINED = 2
"""Micro-batch sizes, the best ones, at which other partitions as good are looked for."""
SIMULATED_NEAR = 3
SIMULATED_SPREAD = 4
SIMULATED_RELAXED = 8
"""How many of the other partitions, those that the closed form likes best, are simulated."""
AHEAD = 3
"""Plans, the best ones, that are also tried with a warm-up that hides transfers; and the best of as many sizes."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A plan. time_ns: of a mini-batch, by the objective. bottleneck_ns, micro_batch: of a partition of the
    search; of a plan made elsewhere the bottleneck is its mini-batch's share of one micro-batch.
    """

    plan: Plan
    time_ns: int
    micro_batch: int
    bottleneck_ns: int
    partition: Partition | None = None

    @property
    def order(self) -> tuple[int, int]:
        """What comes first is better."""
        return self.time_ns, self.micro_batch

    @property
    def sample_ns(self) -> float:
        """Time per sample of the bottleneck stage."""
        return self.bottleneck_ns / self.micro_batch


def paper_candidate(search: Search, memory_bytes: int) -> Candidate | None:
    """The smallest bottleneck at each micro-batch size, and of these the best; None when nothing fits in memory.

    Sizes come in the order of what they could do at best, and end where that is worse than what was found.
    """
    found: list[Candidate] = []
    for partition in _by_size(search, memory_bytes, found):
        found += _candidate(search, partition)
    found += _mixed(search, found, memory_bytes)
    return _best(found)


def best_candidate(search: Search, memory_bytes: int) -> Candidate | None:
    """The best by simulation of: the smallest bottleneck at each size, those of relaxed targets that the closed
    form likes, others as good as the smallest, those of more replicas, other planners' plans, and the best of all
    with more in flight.
    """
    context = search.context
    found = [
        Candidate(plan, time_ns, size, -(-time_ns * size // search.problem.mini_batch))
        for plan, time_ns in (rival_plans(search.problem, context, memory_bytes) if search.options.rivals else ())
        for size in (plan.stages[0].micro_batch,)
    ]
    relaxed: list[Partition] = []
    own: list[Candidate] = []
    for partition in _by_size(search, memory_bytes, found):
        made = _candidate(search, partition)
        own += made
        found += made
        relaxed += search.relaxed(partition, memory_bytes)
    own.sort(key=lambda candidate: candidate.order)
    foremost = [
        candidate.partition
        for candidate in own[:REFINED]
        if candidate.partition is not None and len(candidate.plan.stages) > 1
    ]
    near: list[Partition] = []
    spread: list[Partition] = []
    for partition in foremost:
        if search.options.near and not context.out_of_time():
            near += search.near(partition, memory_bytes)
        if not context.out_of_time():
            spread += search.spread(partition, memory_bytes)
    for partitions, most in ((near, SIMULATED_NEAR), (spread, SIMULATED_SPREAD), (relaxed, SIMULATED_RELAXED)):
        found += _simulated(search, partitions, most)
    found += _mixed(search, own, memory_bytes)
    for candidate in _foremost(found):
        found += _ahead(search, candidate, memory_bytes)
    return _best(found)


def _foremost(found: Sequence[Candidate]) -> list[Candidate]:
    """The best, and the best at each of the sizes that do best: near copies of one plan shall not be all."""
    ordered = sorted(found, key=lambda candidate: candidate.order)
    by_size: dict[int, Candidate] = {}
    for candidate in ordered:
        by_size.setdefault(candidate.micro_batch, candidate)
    chosen = [*ordered[:AHEAD], *list(by_size.values())[:AHEAD]]
    return list({id(candidate): candidate for candidate in chosen}.values())


def _best(found: Sequence[Candidate]) -> Candidate | None:
    return min(found, key=lambda candidate: candidate.order, default=None)


def _mixed(search: Search, found: Sequence[Candidate], memory_bytes: int) -> list[Candidate]:
    """Plans whose stages have sizes and ks of their own, where the options ask for them."""
    problem, options, offered = search.problem, search.options, sorted(search.least_ns)
    ks = [k for k in (1, 2, 4, 8, 16) if k <= options.k]
    if options.sizes == "one" and len(ks) == 1:
        return []
    reach = int(options.sizes == "each")
    made = []
    for micro_batch in dict.fromkeys(
        one.micro_batch for one in sorted(found, key=lambda one: one.order)[:REFINED]
    ):
        at = offered.index(micro_batch)
        plans = [
            assembled(problem, drafts, search.recompute)
            for drafts in mixed_drafts(search, offered[max(0, at - reach) : at + reach + 1], ks, memory_bytes)
        ]
        fitting = [plan for plan in plans if fits(problem, plan, memory_bytes)]
        for plan in sorted(fitting, key=lambda plan: estimate(problem, plan))[:SIMULATED_RELAXED]:
            time_ns = mini_batch_ns(problem, plan, search.context)
            if time_ns is not None:
                made.append(Candidate(plan, time_ns, micro_batch, -(-time_ns * micro_batch // problem.mini_batch)))
    return made


def _by_size(search: Search, memory_bytes: int, found: Sequence[Candidate]) -> Iterator[Partition]:
    """The partition of the smallest bottleneck at each size that could still win."""
    context = search.context
    for done, (micro_batch, least_ns) in enumerate(search.least_ns.items()):
        so_far = _best(found)
        if so_far is None:
            context.check_deadline()
        elif least_ns > so_far.time_ns:
            context.count("sizes_left_out", len(search.least_ns) - done)
            return
        elif context.out_of_time():
            return
        context.report(done / len(search.least_ns), f"micro-batch {micro_batch}")
        partition = search.smallest(micro_batch, memory_bytes)
        if partition is not None:
            yield partition


def _simulated(search: Search, partitions: Iterable[Partition], most: int) -> list[Candidate]:
    """Those that the closed form likes best."""
    problem, context = search.problem, search.context
    plans = [(partition, plan_of(problem, partition, search.recompute)) for partition in partitions]
    found = []
    for partition, plan in sorted(plans, key=lambda pair: estimate(problem, pair[1]))[:most]:
        if context.out_of_time():
            break
        time_ns = mini_batch_ns(problem, plan, context)
        if time_ns is not None:
            found.append(Candidate(plan, time_ns, partition.costs.micro_batch, partition.bottleneck_ns, partition))
    return found


def _ahead(search: Search, candidate: Candidate, memory_bytes: int) -> Iterator[Candidate]:
    """The plan with stages further ahead of one another, where that fits in memory."""
    plan = runs_ahead(search.problem, candidate.plan, memory_bytes)
    if plan is not None and not search.context.out_of_time():
        time_ns = mini_batch_ns(search.problem, plan, search.context)
        if time_ns is not None and time_ns < candidate.time_ns:
            yield Candidate(plan, time_ns, candidate.micro_batch, candidate.bottleneck_ns, candidate.partition)


def _candidate(search: Search, partition: Partition) -> list[Candidate]:
    """The partition as a plan, or nothing where no schedule of it fits."""
    problem = search.problem
    plan = plan_of(problem, partition, search.recompute)
    costs = partition.costs
    if search.options.objective == "tps":
        time_ns: int | None = costs.micro_batches * partition.bottleneck_ns
    else:
        time_ns = mini_batch_ns(problem, plan, search.context)
    if time_ns is None:
        return []
    return [Candidate(plan, time_ns, costs.micro_batch, partition.bottleneck_ns, partition)]
