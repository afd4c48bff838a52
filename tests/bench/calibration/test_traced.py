"""Traces of runs that are calibrated with: their time, their kernels, and what is refused."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pipebench.bench.accuracy.expression import express
from pipebench.bench.accuracy.measurement import Predictor
from pipebench.bench.accuracy.run import Run
from pipebench.bench.calibration.outcome import calibrate
from pipebench.bench.calibration.sources import TracedRun, with_traces
from pipebench.bench.calibration.subject import subject_of
from pipebench.bench.services import HostServices
from pipebench.domain.errors import PipebenchError
from pipebench.domain.tuning import Tuning
from pipebench.hooks.manager import Host
from tests.bench.accuracy.tables import run
from tests.bench.attachment.card_trace import ALL_REDUCE, PRODUCT, Kernel, card_trace, write_trace
from tests.bench.calibration.simulated import DEVICE, FRAMEWORK, layouts, simulated_runs

HOST = Host()
KERNELS: list[Kernel] = [(PRODUCT, 0, 300), (ALL_REDUCE, 250, 100)]


def test_the_time_and_the_kernels_of_a_trace(tmp_path: Path) -> None:
    """Its iterations count in place of the row's time; kernels are added up, and what they hide is not exposed."""
    file = write_trace(tmp_path / "r.json", card_trace(KERNELS, 1000, rank=1))
    first, second = run(id="a"), run(id="b=c")
    (kept, timed), traced = with_traces([first, second], [f"b=c={file}"])
    assert kept == first
    assert timed.iter_s == pytest.approx(1e-3)
    assert timed.how_read == "median of 2 traced iterations, 1 dropped"
    assert traced == {
        "b=c": TracedRun(rank=1, iteration_s=1e-3, kernels_s=300e-6, communication_s=100e-6, exposed_s=50e-6)
    }


def test_a_trace_need_not_say_its_rank(tmp_path: Path) -> None:
    file = write_trace(tmp_path / "r.json", card_trace(KERNELS, 1000, rank=None))
    alone = run(pp="1", dp="4")
    assert with_traces([alone], [f"{alone.id}={file}"])[1][alone.id].rank == 0
    with pytest.raises(PipebenchError, match="does not say its rank"):
        with_traces([run()], [f"{run().id}={file}"])


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (["=x.json"], "it says no run and its file"),
        (["x.json"], "it says no run and its file"),
        (["other=FILE"], "no run 'other'"),
        (["ID=FILE", "ID=FILE"], "the run has a trace"),
        (["ID=nothing.json"], "there is no file"),
        (["ID=FAR"], "it is of rank 99"),
        (["ID=IDLE"], "have no kernels"),
        (["ID=ONE"], r"one\.json: it has 1 iterations"),
    ],
)
def test_traces_that_are_refused(tmp_path: Path, given: list[str], reason: str) -> None:
    there = {
        "FILE": write_trace(tmp_path / "r.json", card_trace(KERNELS, 1000)),
        "FAR": write_trace(tmp_path / "far.json", card_trace(KERNELS, 1000, rank=99)),
        "IDLE": write_trace(tmp_path / "idle.json", card_trace([(ALL_REDUCE, 0, 1)], 1000)),
        "ONE": write_trace(tmp_path / "one.json", card_trace(KERNELS, 1000, steps=1)),
        "ID": run().id,
    }
    texts = []
    for text in given:
        name, sign, file = text.partition("=")
        texts.append(f"{there.get(name, name)}{sign}{there.get(file, file)}")
    with pytest.raises(PipebenchError, match=reason):
        with_traces([run()], texts)


def traced_runs(constants: dict[str, float], rank: int = 1) -> tuple[list[Run], dict[str, TracedRun]]:
    """Runs that were simulated with these constants, and the kernels of one rank of each."""
    runs = simulated_runs(HOST, layouts()[:4], constants)
    predictor = Predictor(HostServices(HOST))
    tuning = Tuning(device=DEVICE, framework=FRAMEWORK, constants=constants)
    traced = {}
    for each in runs:
        kernels_s = predictor.kernels_s(replace(express(each), tuning=tuning), rank)
        traced[each.id] = TracedRun(
            rank=rank, iteration_s=each.iter_s, kernels_s=kernels_s, communication_s=0.0, exposed_s=0.0
        )
    return runs, traced


def test_kernels_of_a_trace_are_fitted_with_its_run() -> None:
    """They are simulated as they were measured."""
    runs, traced = traced_runs({"launch_us": 40.0})
    made = calibrate(HOST, subject_of(HOST, runs, traced=traced))
    for each in made.runs:
        assert each.traced is not None
        assert each.kernels_before_s is not None
        assert each.kernels_before_s < 0.9 * each.traced.kernels_s
        assert each.kernels_after_s == pytest.approx(each.traced.kernels_s, rel=0.02)


@pytest.mark.nightly
def test_kernels_that_disagree_with_the_time_change_the_fit() -> None:
    runs, traced = traced_runs({"launch_us": 40.0})
    slower = {name: replace(each, kernels_s=1.3 * each.kernels_s) for name, each in traced.items()}
    fits = [calibrate(HOST, subject_of(HOST, runs, traced=each)) for each in (traced, slower)]
    after = [[each.kernels_after_s or 0.0 for each in fit.runs] for fit in fits]
    assert sum(after[1]) > 1.02 * sum(after[0])
