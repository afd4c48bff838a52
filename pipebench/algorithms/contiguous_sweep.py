"""The contiguous optimum over all micro-batch sizes and memory limits."""

from collections.abc import Callable
from dataclasses import dataclass

from pipebench.algorithms.chain import Chain, build_chain
from pipebench.algorithms.contiguous import (
    Partition,
    StageRange,
    contiguous_optimum,
    least_memory,
    shortest_period,
)
from pipebench.algorithms.contiguous_bound import both_ways_bound_ns, take_turns
from pipebench.algorithms.contiguous_class import stage_range
from pipebench.algorithms.linearise import CutRule, Layers, linearise
from pipebench.algorithms.memory_limit import memory_limits
from pipebench.algorithms.micro_batches import micro_batch_candidates
from pipebench.costs.model import CostModel
from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem


@dataclass(frozen=True, slots=True)
class Sweep:
    """The best partition of all micro-batch sizes.

    memory: bytes a device that it keeps to. mini_batch_ns: its period times the micro-batches of a
    mini-batch. lower_ns: no partition of any size is below in that memory, on links of mode `half` under 1F1B*,
    else in any periodic order; None where nothing was proven (see contiguous_bound). complete: the searches ran
    to their end.
    """

    chain: Chain
    partition: Partition
    memory: int
    mini_batch_ns: int
    lower_ns: int | None
    complete: bool


def sweep(
    model: CostModel, cuts: CutRule, count: Callable[[str, int], None], stopped: Callable[[], bool]
) -> Sweep | None:
    """The shortest mini_batch / micro_batch x period, under the first memory limit that admits a plan.

    cuts: where stages may begin (see linearise). count: receives the work done, `probes` (decisions at one
    period) and `states` (intervals looked at). None when `stopped` said so before a plan was found. Raises
    UnsupportedProblem (see stage_range) and InfeasibleProblem with the least memory of this class.
    """
    problem = model.problem
    stages = stage_range(problem)
    sizes = micro_batch_candidates(problem)
    layers = _layers(model, stages, cuts)
    recompute = problem.pins.recompute or "none"
    chains = [build_chain(model, layers, size, recompute) for size in sizes]
    for memory in memory_limits(problem):
        found = _over_sizes(model, chains, stages, memory, count, stopped)
        if found is not None or stopped():
            return found
    raise _infeasible(problem, chains, stages)


def _layers(model: CostModel, stages: StageRange, cuts: CutRule) -> Layers:
    layers = linearise(model.graph, cuts)
    if len(layers) < stages.least:
        raise InfeasibleProblem(
            f"{stages.least} stages are pinned, {model.graph.name!r} can be cut into {len(layers)} at most"
        )
    return layers


def _over_sizes(
    model: CostModel,
    chains: list[Chain],
    stages: StageRange,
    memory: int,
    count: Callable[[str, int], None],
    stopped: Callable[[], bool],
) -> Sweep | None:
    problem = model.problem
    best: tuple[Chain, Partition] | None = None
    best_ns: int | None = None
    lowers: list[int] = []
    for chain in chains:
        repeats = problem.mini_batch // chain.micro_batch
        lower = shortest_period(chain, stages)
        below = None if best_ns is None else -(-best_ns // repeats)
        if not stopped() and (below is None or lower < below):
            result = contiguous_optimum(chain, stages, memory, below_ns=below, stop=stopped)
            count("probes", result.probes)
            count("states", result.states)
            lower = result.lower_ns
            if result.best is not None:
                best, best_ns = (chain, result.best), repeats * result.best.period_ns
        lowers.append(repeats * lower)
    if best is None or best_ns is None:
        return None
    lower_ns = min(best_ns, *lowers)
    complete = lower_ns == best_ns
    proven: int | None = None
    if not any(chain.work_ns(0, chain.length) for chain in chains):
        proven = 0  # periods are 1 ns at least, a simulation takes no time
    elif all(take_turns(model, chain.layers, chain.micro_batch) for chain in chains):
        proven = lower_ns
    elif problem.cluster.link_mode != "delay" and complete:
        ordered = sorted(chains, key=lambda chain: chain is not best[0])
        proven = both_ways_bound_ns(problem.mini_batch, ordered, stages, memory, best_ns, count, stopped)
    return Sweep(*best, memory, mini_batch_ns=best_ns, lower_ns=proven, complete=complete)


def _infeasible(problem: Problem, chains: list[Chain], stages: StageRange) -> InfeasibleProblem:
    least, size = min((least_memory(chain, stages), chain.micro_batch) for chain in chains)
    return InfeasibleProblem(
        f"no contiguous plan of {problem.profile.name!r} on {problem.cluster.size} devices fits in "
        f"{problem.cluster.memory_bytes} bytes a device",
        f"the least that one needs is {least} bytes, at micro-batch {size}",
    )
