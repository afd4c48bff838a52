"""The history that ships: whole, every worsening acknowledged, and of every planner on the quick suite."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from pipebench.bench.suites.files import load_suite, suite_names
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.value import digest
from pipebench.hooks.manager import Host
from pipebench.track.judgement.acknowledgements import FILE, read_acknowledged
from pipebench.track.judgement.judgement import judge
from pipebench.track.nights.exact import PLAN
from pipebench.track.nights.history import StoredNight, open_history
from tests.track.made_nights import MACHINE, OTHER, add_nights, measured, night

FOLDER = Path(__file__).parents[2] / "baselines"
HISTORY = open_history(FOLDER)
FUNCTION = re.compile(r"^def (test_\w+)\((.*?)\)", re.MULTILINE | re.DOTALL)


def test_it_is_whole_and_what_became_worse_is_acknowledged() -> None:
    judgement = judge(HISTORY, read_acknowledged(FOLDER / FILE))
    assert judgement.nights >= 1
    assert not any(event.fails for event in judgement.events)


def test_each_class_of_machine_has_one_night_of_every_sample_by_every_planner() -> None:
    """`baselines/make.py` puts a new night in the place of those of its class."""
    suite = load_suite(str(FOLDER / "samples.toml")).suite
    samples = {(planner, workload.name) for planner in suite.planners for workload in suite.workloads}
    assert len(HISTORY.nights) == len(HISTORY.machines)
    for kept in HISTORY.nights:
        found = [(each.subject.planner, each.subject.workload) for each in kept.night.measured]
        assert len(found) == len(set(found))
        assert set(found) == samples


def test_its_benchmarks_are_those_that_there_are() -> None:
    there_are = {
        f"{file}::{function}"
        for file in make_baselines().BENCHMARKS
        for function, words in FUNCTION.findall((FOLDER.parent / file).read_text())
        if "BenchmarkFixture" in words
    }
    for kept in HISTORY.nights:
        assert {each.name.partition("[")[0] for each in kept.night.benchmarks} == there_are


def test_nights_of_earlier_versions_keep_their_keys() -> None:
    for kept in HISTORY.nights:
        assert StoredNight.of(kept.machine, kept.night, kept.before) == kept


def test_every_plan_that_it_names_is_kept() -> None:
    plans = {each.exact[PLAN] for kept in HISTORY.nights for each in kept.night.measured} - {None}
    assert plans
    assert all(HISTORY.plan(str(plan)) is not None for plan in plans)


def test_the_samples_are_of_every_suite_and_planners_that_there_are() -> None:
    """`baselines/make.py` records them."""
    samples = load_suite(str(FOLDER / "samples.toml")).suite
    assert {workload.name.split("-")[0] for workload in samples.workloads} == set(suite_names())
    assert set(samples.planners) <= set(Host().slot("planners"))


def test_made_anew_the_nights_of_other_classes_stay_with_their_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, plan = make_baselines(), Plan(stages=(Stage(operators=("a",), devices=(0,), micro_batch=1),))
    monkeypatch.setattr(script, "HERE", tmp_path / "baselines")
    monkeypatch.setattr(script, "this_machine", lambda: MACHINE)
    named = measured(exact={PLAN: digest(plan)})
    add_nights(script.HERE, MACHINE, [night(0), night(1)])
    add_nights(script.HERE, OTHER, [night(2, named)], [plan])
    script.keep_others(tmp_path / "made")
    made = open_history(tmp_path / "made")
    assert [(kept.machine, kept.night) for kept in made.nights] == [(OTHER, night(2, named))]
    assert made.plan(digest(plan)) == plan


def make_baselines() -> ModuleType:
    """The script, which no package holds."""
    spec = spec_from_file_location("make_baselines", FOLDER / "make.py")
    assert spec
    assert spec.loader
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    return script
