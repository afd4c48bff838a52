"""The history that ships: whole, every worsening acknowledged, and of every planner on the quick suite."""

from pathlib import Path

from pipebench.bench.suites.files import load_suite, suite_names
from pipebench.hooks.manager import Host
from pipebench.track.judgement.acknowledgements import FILE, read_acknowledged
from pipebench.track.judgement.judgement import judge
from pipebench.track.nights.exact import PLAN
from pipebench.track.nights.history import open_history

FOLDER = Path(__file__).parents[2] / "baselines"
HISTORY = open_history(FOLDER)


def test_it_is_whole_and_what_became_worse_is_acknowledged() -> None:
    judgement = judge(HISTORY, read_acknowledged(FOLDER / FILE))
    assert judgement.nights >= 1
    assert not any(event.fails for event in judgement.events)


def test_it_has_every_planner_on_every_workload_of_the_quick_suite() -> None:
    found = {(each.subject.planner, each.subject.workload) for each in HISTORY.nights[0].night.measured}
    assert {workload for _, workload in found} == {"resnet50", "mmt"}
    assert {planner for planner, _ in found} <= set(Host().slot("planners"))
    assert len(found) == 2 * len({planner for planner, _ in found})


def test_every_plan_that_it_names_is_kept() -> None:
    plans = {each.exact[PLAN] for kept in HISTORY.nights for each in kept.night.measured} - {None}
    assert plans
    assert all(HISTORY.plan(str(plan)) is not None for plan in plans)


def test_the_samples_are_of_every_suite_and_planners_that_there_are() -> None:
    """`baselines/make.py` records them."""
    samples = load_suite(str(FOLDER / "samples.toml")).suite
    assert {workload.name.split("-")[0] for workload in samples.workloads} == set(suite_names())
    assert set(samples.planners) <= set(Host().slot("planners"))
