"""Bisection on the time per sample, and relaxed targets, where every stage has its own configuration."""

from collections.abc import Iterator
from itertools import islice

from pipebench_graphpipe.assembly import Draft
from pipebench_graphpipe.mixed_configs import Configs, all_configs
from pipebench_graphpipe.mixed_search import MixedFeasibility
from pipebench_graphpipe.mixed_tables import MixedStage
from pipebench_graphpipe.search import WIDEST_TARGET, Search

STEPS = 12
"""Bisection steps at most: the search is slow, and the plans are compared by simulation."""


def mixed_drafts(search: Search, sizes: list[int], ks: list[int], memory_bytes: int) -> Iterator[list[Draft]]:
    """Stages of the smallest time per sample among these sizes and ks, then those of relaxed targets.

    What a message of a neighbour's micro-batch takes in buffers is not known to a stage: plans have to be checked.
    """
    problem = search.problem
    costs = [search.costs(size) for size in sizes]
    configs = all_configs(costs, ks, problem.mini_batch)
    best = _within(search, configs, memory_bytes, None)
    if best is None:
        return
    low = 0.0
    for _ in range(STEPS):
        high = _sample_ns(configs, best)
        if high <= low * (1 + search.options.tolerance) or search.context.out_of_time():
            break
        target = (low * high) ** 0.5 if low else high / 2
        found = _within(search, configs, memory_bytes, target)
        if found is None:
            low = target
        else:
            best = found
    yield _drafts(configs, best)
    least, count = _sample_ns(configs, best), search.options.targets
    factors = (WIDEST_TARGET ** (number / count) for number in range(1, count))
    for factor in islice(factors, None if search.options.variant == "best" else 0):
        found = _within(search, configs, memory_bytes, least * factor)
        if found is not None:
            yield _drafts(configs, found)


def _within(
    search: Search, configs: Configs, memory_bytes: int, sample_ns: float | None
) -> list[MixedStage] | None:
    question = MixedFeasibility(configs, configs.limits(memory_bytes, sample_ns), search.problem.cluster.size)
    found = question.stages(search.chain)
    search.context.count("mixed_calls")
    search.context.count("mixed_states", question.states)
    return found


def _sample_ns(configs: Configs, stages: list[MixedStage]) -> float:
    """Of the slowest stage."""
    return max(
        float(configs.costs[stage.config].period_ns[stage.slot, stage.choice])
        / configs.costs[stage.config].micro_batch
        for stage in stages
    )


def _drafts(configs: Configs, stages: list[MixedStage]) -> list[Draft]:
    return [
        Draft(
            stage.operators,
            configs.costs[stage.config].replicas[stage.choice],
            configs.costs[stage.config].micro_batch,
            configs.k[stage.config],
        )
        for stage in stages
    ]
