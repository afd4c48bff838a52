"""A Markov chain over strategies: replace one configuration, keep it if better, sometimes if worse."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from pipebench_pase.elimination import Costs
from pipebench_pase.space import FloatArray

BATCH = 1 << 12


@dataclass(frozen=True, slots=True)
class Walked:
    """The best strategy of a walk. stopped: why it ended."""

    strategy: tuple[int, ...]
    cost: float
    iterations: int
    accepted: int
    stopped: str


def walk(
    costs: Costs,
    start: Sequence[int],
    iterations: int,
    beta: float,
    seed: int,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Walked:
    """FlexFlow's search (Jia et al. 2019, section 6.2): Metropolis-Hastings with a symmetric proposal.

    A worse strategy is taken with probability exp(-beta x loss / cost of the start). Ends after `iterations`, or
    when half of so many have not improved the best.
    """
    rng = np.random.default_rng(seed)
    near: list[list[tuple[int, FloatArray]]] = [[] for _ in costs.vertices]
    for (u, v), both in costs.pairs.items():
        near[u].append((v, both))
        near[v].append((u, both.T))
    at = list(start)
    cost = best_cost = costs.of(at)
    scale = beta / cost if cost else 0.0
    best, found, accepted = tuple(at), 0, 0
    sizes = np.array([len(each) for each in costs.vertices])
    for step in range(1, iterations + 1):
        if step % BATCH == 1:
            if out_of_time():
                return Walked(best, best_cost, step - 1, accepted, "limit")
            vertices = rng.integers(len(sizes), size=BATCH)
            proposals = (rng.random(BATCH) * sizes[vertices]).astype(np.int64).tolist()
            chances = rng.random(BATCH).tolist()
            vertices = vertices.tolist()
        slot = (step - 1) % BATCH
        vertex, new = vertices[slot], proposals[slot]
        old = at[vertex]
        own = costs.vertices[vertex]
        change = own[new] - own[old]
        for other, both in near[vertex]:
            column = at[other]
            change += both[new, column] - both[old, column]
        if change <= 0 or chances[slot] < exp(-scale * change):
            accepted += 1
            at[vertex] = new
            cost += change
            if cost < best_cost * (1 - 1e-12):
                best, best_cost, found = tuple(at), cost, step
        if 2 * (step - found) >= iterations:
            return Walked(best, costs.of(best), step, accepted, "half the search without improvement")
    return Walked(best, costs.of(best), iterations, accepted, "iterations")
