"""All rows of few stages are looked at, and what is said of them."""

from itertools import combinations, product

import numpy as np
import pytest

from pipebench_search.line.annealing import Annealing
from pipebench_search.line.tables import Line
from tests.builders import chain_problem, cluster
from tests.nearness.few_stages import MORE, Few, fastest, places, table
from tests.plugins.search.line.test_annealing import Run

WORK = [40, 10, 30, 20, 50, 10]


def line_on(devices: int, memory: int) -> Line:
    bytes_ = [900, 100, 500, 200, 400, 300]
    on = cluster(devices, memory=memory, bandwidth=1e9)
    problem = chain_problem(
        WORK,
        [2 * each for each in WORK],
        on,
        saved=bytes_,
        activations=[10, 9, 2, 8, 3, 7, 10],
        mode="sync",
        mini_batch=4,
    )
    run = Run(problem)
    line = run.line(run.even)
    assert line is not None
    return line


@pytest.mark.parametrize(
    ("devices", "memory", "stages"), [(2, 10**6, 2), (2, 3000, 3), (2, 2200, 4), (3, 2500, 3)]
)
def test_it_is_the_fastest_of_all(devices: int, memory: int, stages: int) -> None:
    line = line_on(devices, memory)
    annealing, found, most = Annealing(line, 0), [], line.costs.micro_batches
    for cuts in combinations(range(1, len(WORK)), stages - 1):
        for lanes in product(range(devices), repeat=stages):
            if len(set(lanes)) < devices:
                continue
            for ways in product(range(len(line.ways)), repeat=stages):
                for more in range(MORE + 1):
                    caps = [most if more == MORE else min(most, stages - at + more) for at in range(stages)]
                    ns = annealing.ns(np.array([[*cuts, len(WORK)], lanes, ways, caps], np.int64).T.copy())
                    found += [ns] if ns is not None else []
    looked = fastest(line, stages)
    assert looked.places == len(WORK) - 1
    assert looked.ns == min(found)
    assert annealing.ns(looked.rows) == looked.ns


def test_where_no_row_fits_there_is_none() -> None:
    assert fastest(line_on(2, 1300), 2).ns is None


def test_of_many_places_those_count_where_less_is_sent() -> None:
    line = line_on(2, 10**6)
    assert places(line.costs, 2).tolist() == [2, 4]
    assert fastest(line, 3, looks=100).places < len(WORK) - 1


def test_the_table_says_how_many_stages_are_fastest() -> None:
    rows = [
        Few("a", 2, 50, 99, {2: 100, 3: 200, 4: None}),
        Few("b", 3, 50, 220, {3: 300, 4: 200}),
        Few("c", 2, 50, None, {2: None}),
    ]
    said = table(rows).splitlines()
    assert "| 0 | 2 | 1 | 1.225 | 1.50 |" in said
    assert "| 1 | 2 | 1 | 1.414 | 2.00 |" in said
    assert "Of 3 problems 2 have such rows, and 2 a plan of `best`." in said
    assert "`best` takes 1.044 times the fastest of these rows, 0.990 to 1.100." in said
    assert "`best` takes 2.952 times the bound, 1.980 to 4.400." in said
