"""Three readings of PipeDream's estimate of the micro-batches that a stage holds (async).

MadPipe's section 5.1 says that "the number of activations for all layers is at most P"; its baseline can be read
so, or as PipeDream's paper and its released optimizer say it. MadPipe's figures depend on which one is meant.
"""

from typing import Literal

import numpy as np

from pipebench.costs.quantise import IntArray
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench_pipedream.intervals import IntervalCosts

MemoryReading = Literal["p", "decreasing", "released"]

MEANING: dict[MemoryReading, str] = {
    "p": "every stage holds as many micro-batches as there are devices (E0)",
    "decreasing": "a stage holds a micro-batch for each device from its own to the last (E1)",
    "released": (
        "the released optimizer's: a micro-batch for each device behind the stage's own, each with a copy of the "
        "weights, and neither gradients nor buffers (E2)"
    ),
}


def refuse_reading(problem: Problem, reading: MemoryReading) -> None:
    """Raise UnsupportedProblem in sync, where what a stage holds is known, unless `decreasing`."""
    if problem.regime.mode == "sync" and reading != "decreasing":
        raise UnsupportedProblem(
            f"pipedream[memory={reading}] reads an estimate that is made for async", "leave memory out in sync"
        )


def reading_notices(problem: Problem, reading: MemoryReading) -> tuple[str, ...]:
    """Which reading the plan is made under (async)."""
    return (f"memory estimate `{reading}`: {MEANING[reading]}",) if problem.regime.mode == "async" else ()


def room(
    costs: IntervalCosts, reading: MemoryReading, micro_batch: int, limit_bytes: int, devices: int
) -> IntArray:
    """How many micro-batches each stage may be asked to hold, 0 where it cannot stand at all, (c, n+1, n+1).

    The search asks a stage with d replicas and q devices from its own to the last for ceil(q / d). The reading
    says what that is charged: as many (`decreasing`), ceil(devices / d) whatever q (`p`), or one fewer
    (`released`: the last stage is free).
    """
    if reading == "released":
        return 1 + costs.released_micro_batches(micro_batch, limit_bytes)
    held = costs.live_micro_batches(micro_batch, limit_bytes)
    if reading == "decreasing":
        return held
    replicas = np.array(costs.replicas, dtype=np.int64)[:, None, None]
    everywhere: IntArray = np.where(held >= -(-devices // replicas), held, 0)
    return everywhere
