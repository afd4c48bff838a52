"""Rows of stages that `local-search` starts from, by operators and devices; and one of their steps in two ways."""

from collections.abc import Callable

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import IntArray
from pipebench_search.drafts.draft import Drafting
from pipebench_search.drafts.moves import Neighbourhood
from pipebench_search.drafts.rows import rows_to_start_from
from tests.benchmarks.searches import chain

ROWS, CELLS, FAR = 10**6, 4000, 2**60


@pytest.mark.parametrize(("layers", "devices"), [(125, 8), (250, 8), (500, 8), (125, 32), (250, 32)])
def test_rows_to_start_from(benchmark: BenchmarkFixture, layers: int, devices: int) -> None:
    problem = chain(layers, devices, mode="sync", mini_batch=64)
    drafting = Drafting(problem)
    sizes = Neighbourhood(CostModel(problem), drafting).micro_batches
    assert benchmark(rows_to_start_from, drafting, sizes, lambda: False)


def by_sorting(cell: IntArray, ns: IntArray) -> IntArray:
    """For each cell the first row of the least time, by order of the times."""
    order = np.argsort(ns, kind="stable")
    found = np.full(CELLS, -1)
    which, leading = np.unique(cell[order], return_index=True)
    found[which] = order[leading]
    return found


def by_scattering(cell: IntArray, ns: IntArray) -> IntArray:
    """The same in one pass."""
    least, found = np.full(CELLS, FAR), np.full(CELLS, -1)
    np.minimum.at(least, cell, ns)
    leads = np.flatnonzero(ns == least[cell])[::-1]
    found[cell[leads]] = leads
    return found


@pytest.mark.benchmark(group="the first row of the least time in each cell")
@pytest.mark.parametrize("way", [by_sorting, by_scattering])
def test_least_by_cell(benchmark: BenchmarkFixture, way: Callable[[IntArray, IntArray], IntArray]) -> None:
    draw = np.random.default_rng(0)
    cell, ns = draw.integers(0, CELLS, ROWS), draw.integers(0, 10**5, ROWS)
    assert (benchmark(way, cell, ns) == by_sorting(cell, ns)).all()
