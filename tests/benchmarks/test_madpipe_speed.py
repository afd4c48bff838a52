"""madpipe on the paper's grid: search time of every cell, share proven optimal, gap; and both variants."""

import math
import statistics
import time
from collections.abc import Iterator

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.domain.errors import InfeasibleProblem
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult
from pipebench.hooks.context import Context
from pipebench_madpipe.planner import plan
from pipebench_madpipe.plugin import MadPipeOptions
from tests.plugins.madpipe.networks import cells, network, shipped

LAYERS = MadPipeOptions(cuts="layers")


SHIPPED = ("resnet50", "resnet101", "inception_v3", "densenet121")


def grid(name: str) -> Iterator[Problem]:
    if name == "shipped networks":
        for network_name in SHIPPED:
            for bandwidth in (12, 24):
                for devices in range(2, 9):
                    for memory in range(3, 17):
                        yield shipped(devices, memory, bandwidth, network_name)
    else:
        for cell in cells():
            yield network(*cell)


def solve(problem: Problem, options: MadPipeOptions = LAYERS) -> PlanResult | None:
    try:
        return plan(problem, Context(options=options))
    except InfeasibleProblem:
        return None


@pytest.mark.parametrize("name", ["measured networks", "shipped networks"])
def test_every_cell_of_the_papers_grid(benchmark: BenchmarkFixture, name: str) -> None:
    problems = list(grid(name))[:: 1 if benchmark.enabled else 24]
    seconds: list[float] = []
    results: list[PlanResult] = []

    def whole_grid() -> None:
        seconds.clear()
        results.clear()
        for problem in problems:
            start = time.process_time()
            result = solve(problem)
            seconds.append(time.process_time() - start)
            if result is not None:
                results.append(result)

    benchmark.pedantic(whole_grid, rounds=1, warmup_rounds=1)
    gaps = [result.claimed_s / result.lower_bound_s for result in results]  # type: ignore[operator]
    proven = sum(result.termination == "optimal" for result in results)
    benchmark.extra_info |= {
        "counters": {
            "cells": len(problems),
            "infeasible": len(problems) - len(results),
            "unproven": len(results) - proven,
        },
        "geometric_mean_gap": math.exp(statistics.fmean(map(math.log, gaps))) - 1,
        "largest_gap": max(gaps) - 1,
        "median_s": statistics.median(seconds),
        "largest_s": max(seconds),
    }
    assert proven > 0.56 * len(results)
    assert statistics.fmean(map(math.log, gaps)) < math.log(1.021)


@pytest.mark.parametrize("variant", ["exact", "paper"])
@pytest.mark.parametrize(("devices", "memory"), [(4, 4), (4, 12), (8, 8)])
def test_both_variants_side_by_side(benchmark: BenchmarkFixture, devices: int, memory: int, variant: str) -> None:
    problem = network("resnet50", devices, memory)
    options = MadPipeOptions(variant=variant, cuts="layers")  # type: ignore[arg-type]
    rounds = 1 if variant == "paper" else 5
    result = benchmark.pedantic(solve, args=(problem, options), rounds=rounds, warmup_rounds=1)
    assert result is not None
    assert result.schedule is not None
    benchmark.extra_info["counters"] = {"period_ns": result.schedule.period_ns}


@pytest.mark.parametrize("cuts", ["layers", "operators"])
@pytest.mark.parametrize(("devices", "memory"), [(4, 8), (8, 4), (8, 16)])
def test_cuts_of_the_shipped_resnet50(benchmark: BenchmarkFixture, devices: int, memory: int, cuts: str) -> None:
    problem = shipped(devices, memory, 12)
    options = MadPipeOptions(cuts=cuts)  # type: ignore[arg-type]
    assert benchmark.pedantic(solve, args=(problem, options), rounds=3, warmup_rounds=1) is not None
