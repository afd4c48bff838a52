"""Large stores of made-up but possible rows, written by the store's own writer."""

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from unittest import mock

from pipebench.bench.store import Store, StoredRow, TrialInputs, trial_key
from pipebench.bench.store.keys import ComponentInputs
from pipebench.bench.store.sweep_parts import SweepPart
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.row import Row
from pipebench.domain.schedule import FiniteSchedule, Lane
from pipebench.domain.value import digest
from tests.builders import chain_problem, cluster, stages_plan

OPERATORS, DEVICES = 12, 4
REGIMES: tuple[RegimeMode, ...] = ("sync", "async")
CUTS = (([0, 3, 6, 9, 12]), ([0, 2, 6, 9, 12]), ([0, 3, 5, 9, 12]), ([0, 3, 6, 10, 12]), ([0, 4, 6, 9, 12]))
"""Where the plans of a problem cut its chain: entrants share five plans, as they do in real sweeps."""
GROUPS = [[list(range(first, last)) for first, last in pairwise(cut)] for cut in CUTS]
ENVIRONMENT = {
    "python": "3.11.7",
    "system": "Linux",
    "machine": "x86_64",
    "cpu": "AMD EPYC",
    "cpus": "2",
    "git": "8193199",
    "pipebench": "0.2.0",
    "numpy": "2.4.6",
    "numba": "0.68.1",
    "networkx": "3.6.1",
    "PuLP": "3.3.2",
    "highspy": "1.15.1",
}
CALLED = ("1f1b", "chimera", "gpipe", "greedy", "interleaved-1f1b", "kfkb", "zb-h1", "zb-v")


def problem(number: int, mode: RegimeMode) -> Problem:
    """Problem of that number: a chain of its own, so that it has a profile and an object of its own."""
    forward = [1000 + number, *(1000 + place * 101 % 977 for place in range(1, OPERATORS))]
    return chain_problem(forward, [2 * each for each in forward], cluster(DEVICES), mode=mode, mini_batch=8)


def schedule(plan: Plan, number: int) -> FiniteSchedule:
    """An order for the plan, 8 micro-batches of one sample: GPipe's, turned round on every other problem."""
    batches = tuple(range(8))
    backward = batches if number % 2 else batches[::-1]
    return FiniteSchedule(
        lanes=tuple(
            Lane(devices=(stage,), stage=(stage,) * 16, micro_batch=batches + backward, kinds="F" * 8 + "B" * 8)
            for stage in range(len(plan.stages))
        )
    )


def finished(posed: Problem, number: int, entrant: int, mode: RegimeMode, plan: Plan | None) -> StoredRow:
    """The line of one trial; figures follow from its numbers."""
    name = f"planner-{entrant:02d}"
    inputs = TrialInputs(
        problem_id=posed.problem_id,
        regime=mode,
        planning="sync",
        planner=ComponentInputs(name=name, options={"cuts": "operators"}, source=f"{entrant:064x}"),
        executors=(ComponentInputs(name="simulate", source="7" * 64),),
        called={f"schedulers/{called}": f"{place:064x}" for place, called in enumerate(CALLED)},
        timeout_s=300.0,
        memory_bytes=8 * 10**9,
        model=3,
        versions={"python": "3.11", "numba": "0.68.1", "numpy": "2.4.6"},
        host="b" * 64,
    )
    key = trial_key(inputs)
    fields = {} if plan is None else figures(number, entrant, mode, plan)
    row = Row(
        model="chain",
        workload=f"chain number={number}",
        profile="chain",
        cluster="flat",
        hardware="V100 16 GB",
        devices=DEVICES,
        device_memory_bytes=16 * 10**9,
        mini_batch=8,
        regime=mode,
        problem_id=posed.problem_id,
        workload_id=posed.workload_id,
        planner=name,
        scheduler="gpipe" if plan else "",
        named_scheduler="",
        executor="simulate",
        fidelity="paper",
        distribution="pipebench",
        version="0.2.0",
        adapted=mode == "async",
        key=key,
        status="infeasible" if plan is None else "ok",
        reason="no contiguous plan fits" if plan is None else "",
        search_cpu_s=0.01 + (number + entrant) % 89 / 1e4,
        search_wall_s=0.011 + (number + entrant) % 89 / 1e4,
        search_cold_s=0.1,
        elapsed_s=1.2,
        search_ratio={"interpreter": 4.3, "numpy": 3.1, "solver": 2.7},
        search_peak_bytes=92508160,
        counters={"probes": 41 + entrant, "states": 16406 + number},
        environment={**ENVIRONMENT, "load": f"{number % 7}.{entrant % 100:02d}", "seed": "0"},
        **fields,  # type: ignore[arg-type]
    )
    return StoredRow(
        key=key,
        finished_at=f"2026-11-{1 + number % 28:02d}T08:46:{entrant % 60:02d}.288+00:00",
        planner=name,
        executors=("simulate",),
        inputs=inputs,
        row=row,
    )


def figures(number: int, entrant: int, mode: RegimeMode, plan: Plan) -> dict[str, object]:
    """What a plan is worth."""
    simulated_s = 1e-4 * (1 + (number * 31 + entrant * 17) % 101 / 500)
    bound_s = 9e-5
    return {
        "verdict": "valid",
        "fit": "fits",
        "termination": "heuristic",
        "notices": ("adapted: with another micro-batch than planned",) if mode == "async" else (),
        "search_samples": ((0.013, 0.0122),),
        "estimated_s": simulated_s * 1.01,
        "simulated_s": simulated_s,
        "claimed_s": simulated_s * 0.98,
        "bound_s": bound_s,
        "bound_kind": "work",
        "gap": simulated_s / bound_s - 1,
        "throughput": 8 / simulated_s,
        "bubble": 0.1 + entrant / 1000,
        "peak_memory_bytes": {device: 3784581376 + device for device in range(DEVICES)},
        "memory_bytes": 3784581376 + DEVICES - 1,
        "bound_memory_bytes": 962584096,
        "stages": len(plan.stages),
        "depth": len(plan.stages),
        "width": 1,
        "devices_used": DEVICES,
        "cut_id": digest(plan),
        "own_scheduler": "1f1b",
        "own_scheduler_s": simulated_s * 1.1,
        "micro_batch": (1,) * len(plan.stages),
        "replicas": (1,) * len(plan.stages),
        "in_flight": (0,) * len(plan.stages),
    }


def trials(numbers: Sequence[int], entrants: int) -> Iterator[tuple[StoredRow, Problem, Plan | None]]:
    """Of each problem every entrant in both regimes; every 25th has no plan."""
    for number in numbers:
        for mode in REGIMES:
            posed = problem(number, mode)
            plans = [stages_plan(groups, in_flight=[8 + number] * len(groups)) for groups in GROUPS]
            for entrant in range(entrants):
                plan = None if (number + entrant) % 25 == 7 else plans[(number + entrant) % len(plans)]
                yield finished(posed, number, entrant, mode, plan), posed, plan


def write_store(folder: Path, numbers: Sequence[int], entrants: int) -> None:
    """A store of these problems. Nothing is flushed to the disk: it is made anew for each test."""
    with mock.patch.object(os, "fsync"):
        store = Store.open(folder)
        for stored, posed, plan in trials(numbers, entrants):
            order = None if plan is None else schedule(plan, stored.row.mini_batch)
            store.append(stored, posed, plan, order)


def write_shards(folder: Path, problems: int, entrants: int, count: int) -> list[Path]:
    """The same problems as shards of one sweep; problem n is in shard 1 + n mod count."""
    folders = [folder / f"shard-{number}-of-{count}" for number in range(1, count + 1)]
    for number, each in enumerate(folders):
        write_store(each, range(number, problems, count), entrants)
    keys = [Store.open(each, writable=False).latest() for each in folders]
    of_all = [(key, number) for number, found in enumerate(keys, 1) for key in found]
    for number, each in enumerate(folders, 1):
        part = SweepPart.of([key for key, _ in of_all], [shard for _, shard in of_all], number, count)
        Store.open(each).enter_shard(part)
    return folders
