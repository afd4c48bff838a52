"""Which partition of the search becomes the plan: by the paper's rule, or the best of many plans."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipebench.algorithms.coarse import COARSER
from pipebench.algorithms.planning import mini_batch_ns
from pipebench.check import check_schedule
from pipebench.costs.estimate import estimate
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.hooks.context import Context
from pipebench_graphpipe.assembly import assemble_plan, fits, plan_of, with_longer_warm_up
from pipebench_graphpipe.mixed_search import mixed_drafts
from pipebench_graphpipe.search import GraphPipeSearch
from pipebench_graphpipe.target_search import GraphPartition

RIVALS = (
    "data-parallel",
    "pipedream[replicas=split,execution=graph]",
    "pipedream[replicas=split,form=bs,execution=graph]",
    "pipedream[replicas=split,order=level,execution=graph]",
    "pipedream[replicas=split]",
)
"""Chains under true dependencies hold stages that mix parts of several branches, which the DP's space lacks."""
WIDE_RIVALS = ("rannc", "alpa-inter", "gpipe-hybrid")
"""They hold stages that recompute beside others that do not, copies of the pipeline, and other balances."""
SCHEDULERS = ("1f1b", "greedy", "zb-h1", "gpipe")
"""Those that finalists are ordered by: which partition is best depends on the order of its tasks."""
FINALISTS = 6
"""Plans of the search, the best ones under 1F1B, and all rivals are tried under each of these."""


MOST_RIVAL_WORK = 4e9
"""Beyond it each of them takes 10 s or longer: that of 1,000 operators on 64 devices is 4.1e9."""


def rival_work(problem: Problem) -> float:
    """What pipedream's search grows with: intervals of operators, devices, and stages behind one another."""
    operators, devices = len(problem.profile.graph.operators), problem.cluster.size
    return float(operators) ** 2 * devices * min(devices, operators)


def rival_plans(
    problem: Problem, context: Context, memory_bytes: int, names: Sequence[str] = RIVALS
) -> Iterator[tuple[Plan, int]]:
    """Plans of other planners that fit, with the ns of a mini-batch. Planners that are missing or find none are
    skipped.
    """
    if context.services is None:
        return
    if rival_work(problem) > MOST_RIVAL_WORK:
        context.note(
            f"other planners' plans do not compete: they take long for {len(problem.profile.graph.operators)} "
            f"operators on {problem.cluster.size} devices ({COARSER})"
        )
        return
    seen: list[Plan] = []
    for name in names:
        if context.out_of_time():
            return
        try:
            plan = context.plan(name, problem).plan
        except PipebenchError:
            context.count("rivals_without_plan")
            continue
        if plan not in seen and fits(problem, plan, memory_bytes):
            seen.append(plan)
            time_ns = mini_batch_ns(problem, plan, context)
            if time_ns is not None:
                yield plan, time_ns


REFINED = 2
"""Micro-batch sizes, the best ones, at which other partitions as good are looked for."""
SIMULATED_NEAR = 3
SIMULATED_SPREAD = 4
SIMULATED_RELAXED = 8
"""How many of the other partitions, those that the closed form likes best, are simulated."""
AHEAD = 3
"""Plans, the best ones, that are also tried with a warm-up that hides transfers; and the best of as many sizes."""


@dataclass(frozen=True, slots=True)
class PartitionCandidate:
    """A plan to choose from.

    time_ns: of a mini-batch, by the objective.
    bottleneck_ns, micro_batch: of a partition of the search. For another planner's plan the bottleneck is the
        mini-batch's time divided by the micro-batches.
    """

    plan: Plan
    time_ns: int
    micro_batch: int
    bottleneck_ns: int
    partition: GraphPartition | None = None

    @property
    def order(self) -> tuple[int, int]:
        """Sort key; the best candidate is the first."""
        return self.time_ns, self.micro_batch

    @property
    def sample_ns(self) -> float:
        """Time per sample of the bottleneck stage."""
        return self.bottleneck_ns / self.micro_batch


def paper_candidate(search: GraphPipeSearch, memory_bytes: int) -> PartitionCandidate | None:
    """The best of the smallest bottlenecks at each micro-batch size; None when nothing fits in memory.

    Sizes are tried in the order of their lower bounds, until a bound is worse than the best plan.
    """
    found: list[PartitionCandidate] = []
    for partition in _by_size(search, memory_bytes, found):
        found += _candidate(search, partition)
    found += _mixed_candidates(search, found, memory_bytes)
    return _best(found)


def best_candidate(search: GraphPipeSearch, memory_bytes: int) -> PartitionCandidate | None:
    """The best candidate by simulation; for variant=best under the scheduler that suits it best.

    The candidates are: the smallest bottleneck at each size; those of relaxed targets that look best by the closed
    form; others as good as the smallest; those of more replicas; other planners' plans; and the best of all with
    more in flight.
    """
    context, wide = search.context, search.options.variant == "best"
    names = (*(RIVALS if search.options.rivals else ()), *(WIDE_RIVALS if wide else ()))
    rivals = [
        PartitionCandidate(plan, time_ns, size, -(-time_ns * size // search.problem.mini_batch))
        for plan, time_ns in rival_plans(search.problem, context, memory_bytes, names)
        for size in (plan.stages[0].micro_batch,)
    ]
    found = list(rivals)
    relaxed: list[GraphPartition] = []
    own: list[PartitionCandidate] = []
    for partition in _by_size(search, memory_bytes, found):
        made = _candidate(search, partition)
        own += made
        found += made
        relaxed += search.relaxed_partitions(partition, memory_bytes)
    own.sort(key=lambda candidate: candidate.order)
    foremost = [
        candidate.partition
        for candidate in own[:REFINED]
        if candidate.partition is not None and len(candidate.plan.stages) > 1
    ]
    near: list[GraphPartition] = []
    spread: list[GraphPartition] = []
    for partition in foremost:
        if search.options.near and not context.out_of_time():
            near += search.near(partition, memory_bytes)
        if not context.out_of_time():
            spread += search.replicated_partitions(partition, memory_bytes)
    for partitions, most in ((near, SIMULATED_NEAR), (spread, SIMULATED_SPREAD), (relaxed, SIMULATED_RELAXED)):
        found += _simulation_candidates(search, partitions, most)
    found += _mixed_candidates(search, own, memory_bytes)
    for candidate in _foremost(found):
        found += _warm_up_candidates(search, candidate, memory_bytes)
    return _best_ordered(search, found, rivals) if wide else _best(found)


def _foremost(found: Sequence[PartitionCandidate]) -> list[PartitionCandidate]:
    """The best candidate, and the best at each of the best sizes.

    Otherwise all of them could be near copies of one plan.
    """
    ordered = sorted(found, key=lambda candidate: candidate.order)
    by_size: dict[int, PartitionCandidate] = {}
    for candidate in ordered:
        by_size.setdefault(candidate.micro_batch, candidate)
    chosen = [*ordered[:AHEAD], *list(by_size.values())[:AHEAD]]
    return list({id(candidate): candidate for candidate in chosen}.values())


def _best(found: Sequence[PartitionCandidate]) -> PartitionCandidate | None:
    return min(found, key=lambda candidate: candidate.order, default=None)


def _best_ordered(
    search: GraphPipeSearch, found: Sequence[PartitionCandidate], rivals: Sequence[PartitionCandidate]
) -> PartitionCandidate | None:
    """Of the finalists the one of the shortest mini-batch under any of SCHEDULERS."""
    ordered = sorted(found, key=lambda candidate: candidate.order)
    finalists = {id(candidate): candidate for candidate in (*ordered[:FINALISTS], *rivals)}.values()
    timed = [(_least_ns(search, candidate), *candidate.order, candidate) for candidate in finalists]
    return min(timed, key=lambda each: each[:3])[3] if timed else None


def _least_ns(search: GraphPipeSearch, candidate: PartitionCandidate) -> int:
    """Of a mini-batch under the best of SCHEDULERS whose order fits, or as known already."""
    problem, context, plan = search.problem, search.context, candidate.plan
    least = candidate.time_ns
    if len(plan.stages) == 1 or context.services is None:
        return least
    free = plan.without_in_flight()
    for name in SCHEDULERS:
        if context.out_of_time():
            break
        try:
            schedule = context.schedule(name, problem, free)
        except PipebenchError:
            continue
        if check_schedule(problem, free, schedule).status == "valid":
            least = min(least, context.simulated_ns(problem, free, schedule))
    return least


def _mixed_candidates(
    search: GraphPipeSearch, found: Sequence[PartitionCandidate], memory_bytes: int
) -> list[PartitionCandidate]:
    """Plans whose stages have their own sizes and ks, where the options ask for them."""
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
            assemble_plan(problem, drafts, search.recompute)
            for drafts in mixed_drafts(search, offered[max(0, at - reach) : at + reach + 1], ks, memory_bytes)
        ]
        fitting = [plan for plan in plans if fits(problem, plan, memory_bytes)]
        for plan in sorted(fitting, key=lambda plan: estimate(problem, plan))[:SIMULATED_RELAXED]:
            time_ns = mini_batch_ns(problem, plan, search.context)
            if time_ns is not None:
                made.append(
                    PartitionCandidate(plan, time_ns, micro_batch, -(-time_ns * micro_batch // problem.mini_batch))
                )
    return made


def _by_size(
    search: GraphPipeSearch, memory_bytes: int, found: Sequence[PartitionCandidate]
) -> Iterator[GraphPartition]:
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


def _simulation_candidates(
    search: GraphPipeSearch, partitions: Iterable[GraphPartition], most: int
) -> list[PartitionCandidate]:
    """Those that the closed form likes best."""
    problem, context = search.problem, search.context
    plans = [(partition, plan_of(problem, partition, search.recompute)) for partition in partitions]
    found = []
    for partition, plan in sorted(plans, key=lambda pair: estimate(problem, pair[1]))[:most]:
        if context.out_of_time():
            break
        time_ns = mini_batch_ns(problem, plan, context)
        if time_ns is not None:
            found.append(
                PartitionCandidate(plan, time_ns, partition.costs.micro_batch, partition.bottleneck_ns, partition)
            )
    return found


def _warm_up_candidates(
    search: GraphPipeSearch, candidate: PartitionCandidate, memory_bytes: int
) -> Iterator[PartitionCandidate]:
    """The plan with stages further ahead of one another, where that fits in memory."""
    plan = with_longer_warm_up(search.problem, candidate.plan, memory_bytes)
    if plan is not None and not search.context.out_of_time():
        time_ns = mini_batch_ns(search.problem, plan, search.context)
        if time_ns is not None and time_ns < candidate.time_ns:
            yield PartitionCandidate(
                plan, time_ns, candidate.micro_batch, candidate.bottleneck_ns, candidate.partition
            )


def _candidate(search: GraphPipeSearch, partition: GraphPartition) -> list[PartitionCandidate]:
    """The partition as a plan; None where no schedule of it fits."""
    problem = search.problem
    plan = plan_of(problem, partition, search.recompute)
    costs = partition.costs
    if search.options.objective == "tps":
        time_ns: int | None = costs.micro_batches * partition.bottleneck_ns
    else:
        time_ns = mini_batch_ns(problem, plan, search.context)
    if time_ns is None:
        return []
    return [PartitionCandidate(plan, time_ns, costs.micro_batch, partition.bottleneck_ns, partition)]
