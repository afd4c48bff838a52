"""The calibrations do real work, the same each time, and their answers are right."""

import os
from itertools import combinations, product

import highspy
import pytest

from pipebench.bench.searches import calibration
from pipebench.system.highs import highs


def test_the_chain_is_cut_at_the_optimum() -> None:
    costs = [(37 * i) % 101 + 1 for i in range(calibration.CHAIN)]
    least = calibration.interpreter_bound()
    assert pieces(costs, least) <= calibration.PARTS < pieces(costs, least - 1)


def pieces(costs: list[int], limit: int) -> int:
    """How many parts a greedy cut needs when none may exceed the limit."""
    count, load = 1, 0
    for cost in costs:
        count, load = (count, load + cost) if load + cost <= limit else (count + 1, cost)
    return count


def test_the_knapsack_is_solved_to_the_optimum() -> None:
    model = calibration._knapsack()
    items = range(calibration.ITEMS)
    rows = [[model.a_matrix_.value_[calibration.ITEMS * row + i] for i in items] for row in range(3)]
    best = min(
        sum(model.col_cost_[i] for i in items if chosen[i])
        for chosen in product((0, 1), repeat=calibration.ITEMS)
        if all(
            sum(row[i] for i in items if chosen[i]) <= limit
            for row, limit in zip(rows, model.row_upper_, strict=True)
        )
    )
    assert calibration.solver_bound() == best


def test_what_a_solver_prints_at_its_first_instance_is_not_output_of_the_suite(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """HiGHS 1.16.0 writes its version and its licence there, in front of what `compare --json` prints."""
    greeted = []

    class Greeting(highspy.Highs):  # type: ignore[misc] # it has no types
        def __init__(self) -> None:
            super().__init__()
            if not greeted:
                greeted.append(os.write(1, b"Running HiGHS\n"))

    monkeypatch.setattr(highspy, "Highs", Greeting)
    highs.cache_clear()
    calibration.solver_bound()
    os.write(1, b"rows\n")
    assert (bool(greeted), capfd.readouterr().out) == (True, "rows\n")


def test_min_plus_products_by_definition() -> None:
    size = calibration.MATRIX
    table = [[(i * size + j) * 37 % 101 for j in range(size)] for i in range(size)]
    power = table
    for _ in range(2):
        columns = list(zip(*table, strict=True))
        power = [[min(a + b for a, b in zip(row, column, strict=True)) for column in columns] for row in power]
    assert calibration.numpy_bound() == sum(map(sum, power))


def test_all_flavours_take_time_and_are_apart() -> None:
    spent = calibration.calibrate()
    assert list(spent) == ["interpreter", "numpy", "solver"]
    assert all(seconds > 0 for seconds in spent.values())
    assert all(a != b for a, b in combinations(spent.values(), 2))
