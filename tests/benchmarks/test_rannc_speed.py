"""RaNNC on 14,387 operators: BERT of 256 layers, 2048 wide, on 32 devices of 32 GB."""

from functools import cache
from typing import Any

import pytest

from pipebench.bench.problems.workload_builder import WorkloadBuilder
from pipebench.domain.problem import Problem
from pipebench.domain.workload import WorkloadSpec
from pipebench.hooks.context import Context
from pipebench_rannc.planner import plan
from pipebench_rannc.plugin import RaNNCOptions
from tests.plugins.running import services


@cache
def bert(layers: int) -> Problem:
    spec = WorkloadSpec(
        model=f"bert[layers={layers},hidden=2048]",
        cluster="rannc",
        devices=32,
        mini_batch=256,
        optimizer="adam",
    )
    return WorkloadBuilder(services().host).workload(spec).problem("sync")


@pytest.mark.parametrize("variant", ["paper", "released", "best"])
def test_the_largest_bert(benchmark: Any, variant: str) -> None:
    """The issue asks for less than 60 s. Where nothing is timed, 24 layers show that it runs."""
    problem = bert(256 if benchmark.enabled else 24)

    def search() -> object:
        return plan(problem, Context(options=RaNNCOptions(variant=variant), services=services()))  # type: ignore[arg-type]

    result = benchmark.pedantic(search, rounds=1)
    assert result is not None
