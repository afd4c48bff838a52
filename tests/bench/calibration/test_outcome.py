"""Calibrations of runs that the suite simulated with other constants, and of published ones."""

import pytest
from msgspec.structs import replace

from pipebench.bench.accuracy.comparison import held_against
from pipebench.bench.accuracy.reader import read_runs
from pipebench.bench.calibration.errand import Fold, FoldTask, fit_folds
from pipebench.bench.calibration.outcome import Outcome, calibrate, spread_of
from pipebench.bench.calibration.subject import subject_of
from pipebench.bench.prediction_interval import ONE_NODE_SPLIT, ONE_NODE_WHOLE
from pipebench.domain.errors import PipebenchError
from pipebench.domain.framework import Spread
from pipebench.domain.tuning import CONSTANTS, Tuning, usual_constants
from pipebench.formats.frameworks.facts import load_framework
from pipebench.hooks.manager import Host
from tests.bench.accuracy.tables import run
from tests.bench.calibration.simulated import DEVICE, FRAMEWORK, layouts, simulated_runs
from tests.shared_data import shared_data

HOST = Host()
TRUE = {"product_factor": 1.1, "launch_us": 40.0, "skew_us": 35.0}


@pytest.fixture(scope="module")
def made() -> Outcome:
    """Eight runs of two shapes."""
    runs = simulated_runs(HOST, [*layouts()[:4], *layouts(4096)[:4]], TRUE)
    return calibrate(HOST, subject_of(HOST, runs))


def test_constants_come_back_from_runs_that_were_simulated_with_them(made: Outcome) -> None:
    values = {each.name: each for each in made.constants}
    assert values["launch_us"].value == pytest.approx(40, rel=0.03)
    assert values["skew_us"].value == pytest.approx(35, rel=0.03)
    assert values["product_factor"].value == pytest.approx(1.1, rel=0.02)
    assert values["launch_us"].least is not None
    assert values["launch_us"].largest is not None
    assert 38 < values["launch_us"].least <= values["launch_us"].largest < 42


def test_runs_that_a_fit_did_not_see_are_predicted_better(made: Outcome) -> None:
    assert made.before.mean_absolute > 0.1
    assert made.after.mean_absolute < 0.02
    assert made.unseen is not None
    assert made.unseen.mean_absolute < 0.02
    assert (made.groups, made.shapes, made.unseen_shapes) == (8, 2, None)
    assert made.better


def test_what_no_run_can_tell_stays(made: Outcome) -> None:
    """One node has no network."""
    network = next(each for each in made.constants if each.name == "network_factor")
    assert (network.moved, network.value) == (False, 1.0)
    assert "network_factor" not in made.tuning.constants


def test_the_constants_predict_other_runs_of_the_device(made: Outcome) -> None:
    others = simulated_runs(HOST, layouts(1536), TRUE)
    plain, tuned = (held_against(HOST, others, tuning=tuning).errors for tuning in (None, made.tuning))
    assert plain is not None
    assert tuned is not None
    assert tuned.mean_absolute < 0.03 < plain.mean_absolute


def test_a_fold_does_not_see_the_run_that_it_leaves_out() -> None:
    runs = simulated_runs(HOST, layouts(), TRUE)
    subject = subject_of(HOST, runs)
    task = FoldTask(
        device=subject.device,
        framework=subject.framework,
        runs=tuple(each.expressed for each in subject.runs),
        measured_s=tuple(each.measured_s for each in subject.runs),
        usual=usual_constants(load_framework(subject.framework)),
        folds=(Fold(fitted=(0, 1, 2, 4, 5), predicted=(3,)),),
    )
    changed = replace(task, measured_s=tuple(s * (7 if n == 3 else 1) for n, s in enumerate(task.measured_s)))
    seen = replace(task, measured_s=tuple(s * (7 if n == 2 else 1) for n, s in enumerate(task.measured_s)))
    first, again, other = (fit_folds(HOST, each)[0] for each in (task, changed, seen))
    assert first == again
    assert first != other


@pytest.mark.nightly
def test_three_shapes_are_left_out_in_turn_and_so_is_nothing_of_one_run() -> None:
    runs = [each for hidden in (512, 1024, 2048) for each in layouts(hidden)[:2]]
    made = calibrate(HOST, subject_of(HOST, simulated_runs(HOST, runs, TRUE)))
    assert made.unseen_shapes is not None
    assert (made.unseen_shapes.count, made.shapes) == (6, 3)
    alone = calibrate(HOST, subject_of(HOST, simulated_runs(HOST, runs[:1], TRUE)))
    assert (alone.unseen, alone.better, sum(each.moved for each in alone.constants)) == (None, False, 1)


def test_shapes_alone_are_left_out_and_said_one_by_one() -> None:
    """Quantiles of measured over predicted; an interval's group holds the runs of all shapes."""
    runs = [each for hidden in (512, 1024, 2048) for each in layouts(hidden)[:2]]
    subject = subject_of(HOST, simulated_runs(HOST, runs, TRUE), most=6)
    made = calibrate(HOST, subject, leave_out="shapes", afresh=True)
    assert (made.unseen, made.groups, [each.unseen_s for each in made.runs]) == (None, 0, [None] * 6)
    assert made.unseen_shapes is not None
    assert [(each.name, each.errors.count) for each in made.left_out] == [
        (f"{hidden} wide, 512 tokens", 2) for hidden in (512, 1024, 2048)
    ]
    assert [(each.name, each.errors.count) for each in made.interval_groups] == [
        (ONE_NODE_WHOLE.what, 3),
        (ONE_NODE_SPLIT.what, 3),
    ]
    for each in (*made.left_out, *made.interval_groups):
        signed = each.errors.mean_signed
        assert each.low <= 1 / (1 + signed) * 1.1
        assert 1 / each.high - 1 <= signed <= 1 / each.low - 1 + 1e-12
    assert made.better == (made.unseen_shapes.mean_absolute < made.before.mean_absolute)


@pytest.mark.nightly
def test_runs_as_predicted_are_not_better_after_a_fit() -> None:
    """Times that are 30 % off at random: nothing is learned for a run that was not seen."""
    runs = simulated_runs(HOST, layouts(), {})
    noisy = [replace(each, iter_s=each.iter_s * factor) for each, factor in zip(runs, (1.4, 0.7) * 3, strict=True)]
    assert not calibrate(HOST, subject_of(HOST, noisy)).better


def test_runs_of_two_devices_or_frameworks_need_a_name() -> None:
    two = [*layouts()[:1], run(id="v", device="V100-SXM2-32GB", precision="fp16", framework="Megatron-DeepSpeed")]
    with pytest.raises(PipebenchError, match="the runs are of 2 devices") as error:
        subject_of(HOST, two)
    assert error.value.hint == "name one with --device"
    chosen = subject_of(HOST, two, device=DEVICE)
    assert (len(chosen.runs), chosen.left) == (1, {"another device": 1})
    with pytest.raises(PipebenchError, match="2 frameworks"):
        subject_of(HOST, [*layouts()[:1], run(framework="torchtitan")])
    with pytest.raises(PipebenchError, match="no run is of the device 'H100'"):
        subject_of(HOST, layouts()[:1], device="H100")


def test_what_cannot_be_fitted_is_counted() -> None:
    listed = [*layouts()[:2], run(id="e", ep="8", framework="Megatron-DeepSpeed")]
    assert subject_of(HOST, listed).left == {"experts that the suite does not know": 1}
    with pytest.raises(PipebenchError, match=r"none of 1 runs can be fitted: experts that the suite .* \(1\)"):
        subject_of(HOST, listed[2:])


def test_of_many_runs_a_sample_is_drawn_and_always_the_same() -> None:
    many = [replace(layouts()[0], id=f"r{number}") for number in range(60)]
    first, again = (subject_of(HOST, many) for _ in range(2))
    assert first == again
    assert len(first.runs) == 50
    assert first.left == {"more than 50 runs: a sample is fitted": 10}


@pytest.mark.nightly
def test_published_runs_of_one_shape_and_the_error_of_another() -> None:
    """Calibrated on some runs of one width: runs of the other width are predicted better, or it is said."""
    rows = [each for each in read_runs(str(shared_data("measured/published_runs.csv"))) if "vtrain-s" in each.id]
    narrow = [each for each in rows if each.hidden == 1024][::60]
    wide = [each for each in rows if each.hidden == 2048][::60]
    made = calibrate(HOST, subject_of(HOST, narrow))
    plain, tuned = (held_against(HOST, wide, tuning=tuning).errors for tuning in (None, made.tuning))
    assert plain is not None
    assert tuned is not None
    assert tuned.mean_absolute < plain.mean_absolute or not made.better


def test_runs_outside_the_sample_are_predicted_by_fits_without_their_shape() -> None:
    """Layers of one width are one shape, and a fit without them sees none of either model."""
    deeper = [replace(each, id=f"deep-{each.id}") for each in layouts(512, layers=8)[:1]]
    runs = simulated_runs(HOST, [*deeper, *(layouts(hidden)[0] for hidden in (512, 1024, 2048))], TRUE)
    subject = subject_of(HOST, runs, most=2)
    assert (len(subject.runs), len(subject.others)) == (2, 2)
    assert {each.shape for each in (*subject.runs, *subject.others)} == {
        f"{hidden} wide, 512 tokens" for hidden in (512, 1024, 2048)
    }
    made = calibrate(HOST, subject, leave_out="shapes")
    assert len(made.runs) == 2
    assert made.unseen_shapes is not None
    assert made.unseen_shapes.count == 4
    assert sorted(each.errors.count for each in made.left_out) == [1, 1, 2]


def test_the_spread_is_of_unseen_runs_by_shape_where_there_are_thirty() -> None:
    measured = {number: 100.0 + number for number in range(41)}
    by_run = dict.fromkeys(measured, 100.0)
    by_shape = dict.fromkeys(measured, 50.0)
    assert spread_of({}, by_run, measured) == Spread(low=1.02, high=1.38, count=41, left_out="runs")
    made = spread_of(by_shape, by_run, measured)
    assert made is not None
    assert (made.left_out, made.low, made.high) == ("shapes", 2.04, 2.76)
    few = {number: by_run[number] for number in range(29)}
    assert spread_of(few, few, measured) is None
    assert spread_of({}, {}, {}) is None


def test_calibrated_predictions_carry_the_spread_of_the_calibration_alone() -> None:
    plain = Tuning(device=DEVICE, framework=FRAMEWORK, constants={"launch_us": 20})
    spread = Spread(low=0.8, high=1.3, count=30, left_out="shapes")
    made = held_against(HOST, layouts()[:1], tuning=plain)
    assert (made.rows[0].low_s, made.with_interval) == (None, 0)
    (row,) = held_against(HOST, layouts()[:1], tuning=replace(plain, spread=spread)).rows
    assert row.simulated_s == made.rows[0].simulated_s
    assert row.simulated_s is not None
    assert (row.low_s, row.high_s) == (row.simulated_s * 0.8, row.simulated_s * 1.3)


def test_a_calibration_is_of_its_device_and_framework() -> None:
    tuning = Tuning(device=DEVICE, framework=FRAMEWORK, constants={"launch_us": 20})
    other = run(id="h", device="H100-SXM5-80GB", framework="Megatron-DeepSpeed", precision="bf16")
    rows = held_against(
        HOST, [layouts()[0], other, run(device=DEVICE, framework="Megatron-LM")], tuning=tuning
    ).rows
    assert rows[0].simulated_s is not None
    assert "not of 'H100-SXM5-80GB'" in rows[1].reason
    assert "not of 'megatron-v2'" in rows[2].reason
    assert set(tuning.constants) <= set(CONSTANTS)
