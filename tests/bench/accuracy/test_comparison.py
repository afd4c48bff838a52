"""Runs beside their predictions: what a row, a group and an alternative say."""

import math
from dataclasses import replace as replace_entry
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.bench.accuracy.comparison import held_against
from pipebench.bench.accuracy.errand import own_schedulers, predict_all
from pipebench.bench.accuracy.expression import express
from pipebench.bench.accuracy.measurement import Predictor, plan_of
from pipebench.bench.accuracy.reader import read_runs
from pipebench.bench.cage.installed import installed_host
from pipebench.bench.services import HostServices
from pipebench.hooks.discovery import Provider
from pipebench.hooks.manager import Host
from tests.bench.accuracy.tables import run
from tests.shared_data import shared_data

HOST = Host()
LAYOUTS = [
    run(id=f"{tp}-{pp}-{dp}", tp=str(tp), pp=str(pp), dp=str(dp), mbs="4")
    for tp, pp, dp in ((1, 8, 1), (8, 1, 1), (2, 2, 2), (4, 1, 2), (1, 1, 8))
]


def test_a_row_has_its_prediction_and_its_error() -> None:
    (row,) = held_against(HOST, [run(mem_gib="20")]).rows
    assert row.simulated_s is not None
    assert row.error == pytest.approx((row.simulated_s - 0.25) / 0.25)
    assert row.memory_bytes is not None
    assert row.measured_memory_bytes == 20 * 2**30
    assert (row.low_s or 0.0) < row.simulated_s < (row.high_s or 0.0)
    assert row.reason == ""


def test_the_plan_is_the_one_that_was_run() -> None:
    predictor = Predictor(HostServices(HOST))
    made = express(run(partition="5-3"))
    problem = predictor.problem(made)
    plan = plan_of(problem, made)
    assert [len([name for name in stage.operators if name.startswith("layers.")]) for stage in plan.stages] == [
        5,
        3,
    ]
    assert [stage.devices for stage in plan.stages] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert {(stage.tensor_parallel, stage.data_parallel, stage.micro_batch) for stage in plan.stages} == {
        (2, 2, 8)
    }
    assert all("recompute" in choice for stage in plan.stages for choice in stage.choice if "layers" in choice)


def test_only_kernels_of_schedulers_that_ship_are_kept() -> None:
    made = [express(run()), express(run(pp="4", tp="1")), express(run(pp="4", tp="1"))]
    assert own_schedulers(HOST, made) == (made[0].scheduler,)
    theirs = Provider("others", "1", "1f1b = others:plugin")

    class Foreign(Host):
        def slot(self, name: Any) -> Any:
            return {key: replace_entry(each, provider=theirs) for key, each in super().slot(name).items()}

    assert own_schedulers(Foreign(), made) == ()


def test_an_iteration_grows_with_its_micro_batches() -> None:
    """p even stages take m + p - 1 turns: twice as many micro-batches take less than twice as long."""
    small, large = held_against(HOST, [run(), run(id="twice", gbs="64")]).rows
    assert small.simulated_s is not None
    assert large.simulated_s is not None
    assert 1.6 < large.simulated_s / small.simulated_s < 2


def test_measured_as_predicted_has_no_error_no_regret_and_full_agreement() -> None:
    rows = held_against(HOST, LAYOUTS).rows
    exact = [
        replace(each, iter_s=row.simulated_s) for each, row in zip(LAYOUTS, rows, strict=True) if row.simulated_s
    ]
    assert len(exact) == len(LAYOUTS)
    made = held_against(HOST, exact)
    assert made.errors is not None
    assert made.errors.largest_absolute == 0
    (layouts,) = made.layouts
    assert (layouts.count, layouts.tau, layouts.regret) == (5, 1, 0)
    assert (made.mean_regret, made.mean_tau) == (0, 1)


def test_fewer_than_four_layouts_are_no_group() -> None:
    assert held_against(HOST, LAYOUTS[:3]).layouts == ()


def test_memory_counts_where_it_was_measured() -> None:
    (row,) = held_against(HOST, [run()]).rows
    assert row.memory_bytes is not None
    assert row.memory_high_bytes is not None
    gib = row.memory_bytes / 2**30
    measured = {"half": gib / 2, "less": gib / 1.25, "more": gib * 2}
    assert row.memory_bytes < row.memory_high_bytes < 4 * row.memory_bytes
    runs = [run(id=name, mem_gib=str(peak)) for name, peak in measured.items()]
    made = held_against(HOST, [*runs, run(id="none")])
    assert made.memory is not None
    assert made.memory.errors.count == 3
    assert made.memory.errors.mean_signed == pytest.approx((1 + 0.25 - 0.5) / 3, rel=1e-6)
    within = row.memory_high_bytes >= 2 * row.memory_bytes
    assert made.memory.at_or_above == pytest.approx(1.0 if within else 2 / 3)


def test_what_is_not_expressed_is_counted_and_nothing_is_dropped() -> None:
    runs = [run(), run(id="a", ep="8"), run(id="b", ep="2"), run(id="c", cp="2")]
    made = held_against(HOST, runs)
    assert [row.id for row in made.rows] == ["small", "a", "b", "c"]
    assert made.reasons == {
        "experts that the suite does not know": 2,
        "the product of the degrees is not the number of GPUs": 1,
    }
    assert made.errors is not None
    assert made.errors.count == 1


def test_what_was_inferred_is_counted_where_it_was_used() -> None:
    runs = [
        run(precision="fp16?"),
        run(id="b", precision="fp16?", device="A100-80GB?"),
        run(id="c", seq="512?", ep="2"),
    ]
    assert held_against(HOST, runs).inferred == {"precision": 2, "device": 1}


def test_alternatives_are_predicted_and_the_usual_stays() -> None:
    open_run = run(recompute="")
    usual = held_against(HOST, [open_run])
    made = held_against(HOST, [open_run], alternatives=True)
    assert made.rows == usual.rows
    by_value = {each.value: each for each in made.variants}
    assert by_value["none"].usual
    assert {value for value, each in by_value.items() if not each.usual} == {"selective", "full"}
    (full,) = held_against(HOST, [run(recompute="full")]).rows
    assert by_value["full"].errors is not None
    assert by_value["full"].errors.mean_signed == pytest.approx(full.error)


LARGE = {"layers": "20", "hidden": "2048", "seq": "2048", "device": "V100-16GB", "schedule": ""}


def test_a_run_that_was_measured_fitted_its_device() -> None:
    """Without recomputation it would not have. Other assumptions, and their alternatives, stay as they are."""
    open_run = run(**LARGE, mbs="", recompute="", pp="1", dp="4")
    (none,) = held_against(HOST, [replace(open_run, recompute="none")]).rows
    (full,) = held_against(HOST, [replace(open_run, recompute="full")]).rows
    assert (none.memory_bytes or 0) > 1.5 * 16 * 10**9 > 1.5 * (full.memory_bytes or 0)
    made = held_against(HOST, [open_run, run()], alternatives=True)
    row, other = made.rows
    assert row.simulated_s == full.simulated_s
    taken = {(each.field, each.value) for each in row.assumptions}
    assert taken >= {("mbs", "8"), ("recompute", "full")}
    assert other == held_against(HOST, [run()]).rows[0]
    by_value = {(each.field, each.value): each for each in made.variants}
    assert by_value["recompute", "full"].usual
    assert not by_value["recompute", "none"].usual
    (single,) = held_against(HOST, [replace(open_run, recompute="full", mbs=1)]).rows
    assert by_value["mbs", "1"].errors is not None
    assert by_value["mbs", "1"].errors.mean_signed == pytest.approx(single.error)


def test_the_upper_end_of_memory_is_of_the_largest_micro_batch_that_fits() -> None:
    """A source that does not say its micro-batch may have run any that its device held; else the end stays."""
    small = LARGE | {"layers": "12"}
    open_run = run(**small, mbs="", recompute="none", gbs="64", pp="2", dp="2", gpus="8", tp="2")
    each = {}
    for size in (1, 2, 4, 8, 16):
        (each[size],) = held_against(HOST, [replace(open_run, mbs=size)]).rows
    fits = [size for size, row in each.items() if (row.memory_high_bytes or 0) <= 16 * 10**9]
    assert 1 < len(fits) < 5
    (row,) = held_against(HOST, [open_run]).rows
    assert {each.field: each.value for each in row.assumptions}["mbs"] == "1"
    assert (row.simulated_s, row.memory_bytes) == (each[1].simulated_s, each[1].memory_bytes)
    assert row.memory_high_bytes == each[fits[-1]].memory_high_bytes
    assert (row.memory_high_bytes or 0) > (each[1].memory_high_bytes or 0)
    (large,) = held_against(HOST, [replace(open_run, device="V100-200GB")]).rows  # none of the table has as much
    assert large.memory_bytes == row.memory_bytes
    assert large.memory_high_bytes == each[16].memory_high_bytes


def test_a_run_that_fits_with_nothing_keeps_the_usual_assumption() -> None:
    huge = run(**LARGE | {"hidden": "8192", "gbs": "64"}, mbs="8", recompute="", tp="1", pp="1", dp="8")
    (row,) = held_against(HOST, [huge]).rows
    assert row.memory_bytes
    assert {each.field: each.value for each in row.assumptions}["recompute"] == "none"


def test_it_is_told_how_many_runs_are_predicted_alternatives_among_them() -> None:
    """In child processes, which is where it is told."""
    heard: list[int] = []
    held_against(installed_host(), [run(recompute="")], alternatives=True, told=heard.append)
    assert heard == [1, 3]


def test_groups_hold_every_prediction_along_each_axis() -> None:
    made = held_against(HOST, [*LAYOUTS, run(id="other", layers="4", pp="1", dp="4")])
    for axis in ("model", "source", "gpus", "degrees"):
        assert sum(group.errors.count for group in made.groups if group.axis == axis) == 6
    assert {group.name for group in made.groups if group.axis == "model"} == {
        "gpt 8x1024 on 8 x A100-80GB",
        "gpt 4x1024 on 8 x A100-80GB",
    }


def test_a_run_that_fails_costs_itself_only() -> None:
    good = express(run())
    bad = replace(good, spec=replace(good.spec, profiler="analytic[efficiency=7]"))
    first, second = predict_all(HOST, [bad, good])
    assert "efficiency" in first.reason
    assert second.simulated is not None


def test_a_run_that_ends_its_process_costs_itself_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipebench.bench.accuracy.errand.WORK", "tests.bench.accuracy.dying:die")
    runs = [replace(express(run()), id=name) for name in ("first", "deadly", "last")]
    made = predict_all(installed_host(), runs)
    assert [each.reason for each in made] == ["first lived", "its process ended with exit code 3", "last lived"]


def test_every_run_of_the_whole_table_is_predicted_or_has_a_reason() -> None:
    runs = read_runs(str(shared_data("measured/published_runs.csv")))[::9]
    made = held_against(HOST, runs)
    for row in made.rows:
        assert (row.simulated_s is None) == bool(row.reason)
        assert row.simulated_s is None or (math.isfinite(row.simulated_s) and row.simulated_s > 0)
    assert not any("offers no" in reason or "Error" in reason for reason in made.reasons)
