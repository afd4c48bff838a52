"""The fit of constants against times of closed form."""

from collections.abc import Mapping

import pytest

from pipebench.bench.calibration.fitting import fit_constants
from pipebench.domain.tuning import CONSTANTS, usual_constants
from pipebench.formats.frameworks.facts import load_framework

USUAL = usual_constants(load_framework("megatron-deepspeed"))
RUNS = tuple(range(12))


def simulate(number: int, constants: Mapping[str, float]) -> float:
    """Products, a stream and launches, in shares that differ from run to run."""
    products = (1 + number % 3) * constants["product_factor"]
    stream = (1 + number % 4) / constants["stream_share"]
    return products + stream + (number % 5) * constants["launch_us"] / 40


def test_constants_come_back_and_the_others_stay() -> None:
    true = USUAL | {"product_factor": 1.1, "launch_us": 35.0}
    made = fit_constants(RUNS, {run: simulate(run, true) for run in RUNS}, USUAL, simulate)
    assert set(made.moved) == {"product_factor", "stream_share", "launch_us"}
    assert made.constants["product_factor"] == pytest.approx(1.1, rel=0.03)
    assert made.constants["launch_us"] == pytest.approx(35, rel=0.05)
    assert made.constants["stream_share"] == pytest.approx(0.82, rel=0.04)
    assert {name: made.constants[name] for name in USUAL if name not in made.moved} == {
        name: value for name, value in USUAL.items() if name not in made.moved
    }


def test_runs_as_predicted_move_nothing() -> None:
    made = fit_constants(RUNS, {run: simulate(run, USUAL) for run in RUNS}, USUAL, simulate)
    assert made.constants == pytest.approx(USUAL, rel=1e-4)


def test_few_runs_move_few_constants() -> None:
    """Three runs tell one constant: the one that changes them most."""
    true = USUAL | {"launch_us": 60.0}
    made = fit_constants((2, 3, 4), {run: simulate(run, true) for run in (2, 3, 4)}, USUAL, simulate)
    assert made.moved == ("launch_us",)
    assert made.constants["launch_us"] == pytest.approx(60, rel=0.05)


def test_constants_stay_in_their_ranges() -> None:
    true = {run: 5 * simulate(run, USUAL) for run in RUNS}
    made = fit_constants(RUNS, true, USUAL, simulate)
    for name, value in made.constants.items():
        assert CONSTANTS[name].low <= value <= CONSTANTS[name].high
    assert made.constants["product_factor"] == CONSTANTS["product_factor"].high


def test_one_wild_run_does_not_lead_the_others_away() -> None:
    times = {run: simulate(run, USUAL) for run in RUNS}
    made = fit_constants(RUNS, times | {7: 3 * times[7]}, USUAL, simulate)
    for run in RUNS:
        assert simulate(run, made.constants) == pytest.approx(times[run], rel=0.06)


def test_runs_that_tell_nothing_move_nothing() -> None:
    made = fit_constants(RUNS, dict.fromkeys(RUNS, 2.0), USUAL, lambda number, constants: 1.0)
    assert (made.moved, made.constants) == ((), USUAL)


def test_afresh_the_usual_constants_neither_start_nor_pull() -> None:
    """Whatever they are, the same fit comes out; and it is closer than one that is pulled."""
    true = USUAL | {"product_factor": 1.1, "launch_us": 35.0}
    times = {run: simulate(run, true) for run in RUNS}
    other = USUAL | {"product_factor": 0.9, "launch_us": 80.0, "stream_share": 0.95}
    made, again = (fit_constants(RUNS, times, usual, simulate, afresh=True) for usual in (USUAL, other))
    assert set(made.moved) == {"product_factor", "stream_share", "launch_us"}
    assert made.moved == again.moved
    for name in made.moved:
        assert made.constants[name] == again.constants[name] == pytest.approx(true[name], rel=0.002)
    pulled = fit_constants(RUNS, times, other, simulate)
    assert abs(pulled.constants["launch_us"] - 35) > abs(made.constants["launch_us"] - 35)
