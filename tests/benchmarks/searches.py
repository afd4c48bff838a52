"""The searching kernels on made problems, each as a work that can be timed and an answer that can be compared.

`python -m tests.benchmarks.searches NAME` with NUMBA_DISABLE_JIT=1 runs one as the plain Python that its kernels
are compiled from.
"""

import json
import random
import sys
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from pipebench.algorithms.chains.chain import build_chain
from pipebench.algorithms.chains.contiguous import StageRange, contiguous_optimum, least_memory, longest_period
from pipebench.algorithms.graph_orders import linearise
from pipebench.algorithms.orders.greedy import GreedyOrder
from pipebench.algorithms.orders.tables import Tables
from pipebench.costs.model import CostModel
from pipebench.domain.problem import Pins, Problem, RegimeMode
from pipebench.simulation.simulate import simulate
from pipebench_alpa.planner import plan as alpa
from pipebench_alpa.plugin import AlpaOptions
from pipebench_graphpipe.planner import plan as graphpipe
from pipebench_graphpipe.plugin import GraphPipeOptions
from pipebench_madpipe.allocation import Estimate
from pipebench_madpipe.grid import UP, ValueGrid, grid_dp
from pipebench_madpipe.label_search import estimated_optimum
from pipebench_madpipe.pattern import plan_pattern
from pipebench_madpipe.periodic_bnb import search
from pipebench_pipedream.planner import plan as pipedream
from pipebench_pipedream.plugin import PipeDreamPlannerOptions
from pipebench_piper.planner import plan as piper
from pipebench_piper.plugin import PiperPlannerOptions
from pipebench_rannc.stage_dp import all_labels
from pipebench_tarnawski.planner import plan as tarnawski
from pipebench_tarnawski.plugin import TarnawskiPlannerOptions
from tests.builders import chain_problem, cluster, dag_problem, stages_plan
from tests.plugins.madpipe.brute_force import chain_of, class_of, devices_of, on_devices
from tests.plugins.rannc.test_stage_dp import random_times
from tests.plugins.running import context
from tests.simulation.schedules import one_f_one_b_schedule

Work = Callable[[], Any]
GRID = ValueGrid(41, 8, 21, UP)


def chain(layers: int, devices: int, memory: int = 10**15, mode: RegimeMode = "async", **more: Any) -> Problem:
    """Times of 0.1 to 10 ms, activations up to 100 MB."""
    draw = random.Random(layers)
    forward = [draw.randrange(10**5, 10**7) for _ in range(layers)]
    return chain_problem(
        forward,
        [2 * time for time in forward],
        cluster(devices, memory, 12e9),
        activations=[draw.randrange(10**5, 10**8) for _ in range(layers + 1)],
        weights=[draw.randrange(10**5, 10**7) for _ in range(layers)],
        mode=mode,
        **more,
    )


def tight_chain(layers: int, devices: int) -> Problem:
    """The same with a third more memory than any plan needs."""
    roomy = chain(layers, devices)
    built = build_chain(CostModel(roomy), linearise(roomy.profile.graph), 1)
    return chain(layers, devices, round(least_memory(built, StageRange(1, devices)) * 4 / 3))


def branches(count: int, length: int, devices: int, mini_batch: int = 64) -> Problem:
    """Branches side by side and the operator that joins them."""
    last = count * length
    draw = np.random.default_rng(0)
    tensors = [(o, (last,) if o % length == length - 1 else (o + 1,), 10**6) for o in range(last)]
    return dag_problem(
        draw.integers(10**5, 10**7, last + 1).tolist(),
        draw.integers(10**5, 2 * 10**7, last + 1).tolist(),
        tensors,
        cluster(devices, 16 * 10**9, bandwidth=12.5e9),
        weights=draw.integers(0, 10**7, last + 1).tolist(),
        saved=draw.integers(0, 4 * 10**6, last + 1).tolist(),
        mini_batch=mini_batch,
        micro_batches=(1, 2, 4, 8),
    )


def madpipe_labels() -> Work:
    problem = tight_chain(48, 6)
    of, below = class_of(problem), longest_period(chain_of(problem)) + 1
    return lambda: estimated_optimum(of, Estimate(True, True), 1, below).lower_ns


def madpipe_pattern() -> Work:
    """Eight stages, of which four share a device."""
    problem = chain(8, 5, 1_200_000_000)
    special = (True, False, True, False, True, False, True, False)
    described = plan_pattern(CostModel(problem), on_devices(problem, tuple(range(9)), devices_of(special)))
    return lambda: [int(each) for each in search(described, 20_000)[:3]]


def madpipe_grid() -> Work:
    problem = tight_chain(GRID_LAYERS, GRID_DEVICES)
    of, target = class_of(problem), longest_period(chain_of(problem)) // 2
    return lambda: int(grid_dp(of.table, of.memory, target, of.most, GRID)[0])


GRID_LAYERS, GRID_DEVICES = 24, 5


def contiguous() -> Work:
    problem = tight_chain(120, 8)
    built = build_chain(CostModel(problem), linearise(problem.profile.graph), 1)

    def work() -> int:
        best = contiguous_optimum(built, StageRange(1, 8), problem.cluster.memory_bytes).best
        assert best is not None
        return best.period_ns

    return work


def claimed(plan: Callable[..., Any], problem: Problem, options: Any) -> float:
    """What a planner claims."""
    return float(plan(problem, context(options)).claimed_native)


def planner(plan: Callable[..., Any], problem: Problem, options: Any) -> Work:
    """A whole planner."""
    return partial(claimed, plan, problem, options)


def rannc_stages() -> Work:
    """The dynamic program over blocks and devices; coarsening is Python of its own."""
    times = random_times(random.Random(1), 24, 12, classes=3)
    return lambda: sorted((count, cut.value) for count, cut in all_labels(times, 8, 12).cuts.items())


def simulator() -> Work:
    stages, micro_batches = 16, 256
    problem = chain_problem(
        [100] * stages,
        [200] * stages,
        cluster(stages),
        activations=[0, *[10] * (stages - 1), 0],
        saved=[5] * stages,
        mode="sync",
        mini_batch=micro_batches,
    )
    plan = stages_plan([[stage] for stage in range(stages)])
    schedule = one_f_one_b_schedule(problem, plan)
    return lambda: simulate(problem, plan, schedule).total_ns


def greedy() -> Work:
    """Two orders of a chain of 16 stages."""
    problem = chain(16, 16, mode="sync", mini_batch=32)
    plan = stages_plan([[stage] for stage in range(16)])
    tables = Tables.of(CostModel(problem), plan, 32, links=True)
    return lambda: [GreedyOrder(tables, tables.follow, split).makespan_ns for split in (False, True)]


SEARCHES: dict[str, Callable[[], Work]] = {
    "madpipe: labels": madpipe_labels,
    "madpipe: pattern": madpipe_pattern,
    "madpipe: paper's grid": madpipe_grid,
    "contiguous": contiguous,
    "graphpipe": lambda: planner(graphpipe, branches(4, 8, 8), GraphPipeOptions(variant="paper", objective="tps")),
    "pipedream": lambda: planner(
        pipedream, branches(4, 24, 16), PipeDreamPlannerOptions(cost="paper", states="chain")
    ),
    "piper": lambda: planner(piper, branches(2, 8, 8, 16), PiperPlannerOptions(memory="piper")),
    "tarnawski": lambda: planner(tarnawski, branches(3, 9, 4), TarnawskiPlannerOptions(memory="released")),
    "alpa": lambda: planner(
        alpa, chain(40, 8, mode="sync", mini_batch=64, pins=Pins(micro_batch=1)), AlpaOptions(memory="released")
    ),
    "rannc: stages": rannc_stages,
    "simulator": simulator,
    "greedy": greedy,
}
"""What compiled kernels do; PaSE's is numpy and has a plain statement of its own."""


def main() -> None:
    """Run one search once and print its answer and its CPU seconds as JSON."""
    work = SEARCHES[sys.argv[1]]()
    before = process_time()
    answer = work()
    print(json.dumps({"answer": answer, "cpu_s": process_time() - before}))


if __name__ == "__main__":
    main()
