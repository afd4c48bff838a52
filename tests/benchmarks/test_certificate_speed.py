"""Certificates of eight plans of one problem: each proves the bound, or all share it."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.certificates.write import BoundParts, certificate
from tests.benchmarks.searches import chain
from tests.builders import stages_plan
from tests.plugins.running import services

LAYERS = 200


@pytest.mark.benchmark(group="certificates of one problem")
@pytest.mark.parametrize("shared", [False, True], ids=["each alone", "shared bound"])
def test_eight_plans(benchmark: BenchmarkFixture, shared: bool) -> None:
    problem = chain(LAYERS, 2, mode="sync", mini_batch=8)
    plans = [stages_plan([range(cut), range(cut, LAYERS)]) for cut in range(96, 104)]
    cases = [(plan, services().schedule("1f1b", problem, plan)) for plan in plans]

    def certify() -> int:
        bounds = BoundParts() if shared else None
        return sum(len(certificate(problem, *case, {}, bounds).data) for case in cases)

    assert benchmark.pedantic(certify, rounds=2) > 0
