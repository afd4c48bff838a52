"""What is run, what is taken from the store, and what is kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipebench.bench.components import ready_planner
from pipebench.bench.searches.isolated import TimedSearch, timed_search
from pipebench.bench.store import Store, open_results
from pipebench.bench.sweeps.run_plan import RunPlan, make_run_plan
from pipebench.bench.sweeps.sweep import Where, run_trials
from pipebench.bench.trials.comparison import Request, running_order, trials
from pipebench.bench.trials.trial import Trial
from pipebench.cli.progress import about_store
from pipebench.domain.row import Row
from pipebench.domain.value import digest
from pipebench.hooks.syntax import parse_reference
from tests.bench.ready import workload
from tests.bench.searches.isolation.scripts import HONEST, HOST, PROBLEM

WORKLOADS = [workload(PROBLEM)]
FAILS = "def plan(problem, context):\n    raise ValueError('no')\n"


def listed(folder: Path, sources: dict[str, str], **request: Any) -> list[Trial]:
    """Trials in one regime, unless the request says otherwise."""
    planners = []
    for name, source in sources.items():
        (folder / name).write_text(source)
        planners.append(ready_planner(HOST, parse_reference(str(folder / name))))
    return trials(Request(workloads=WORKLOADS, planners=planners, **{"regimes": ("sync",)} | request))


def run(todo: RunPlan) -> list[Row]:
    return [each.outcome.row for each in run_trials(HOST, todo, Where())]


def made(folder: Path, found: Sequence[Trial], **options: bool) -> RunPlan:
    return make_run_plan(HOST, found, Store.open(folder / "store"), **options)


def test_what_is_finished_is_not_run_again(tmp_path: Path) -> None:
    found = listed(tmp_path, {"a.py": HONEST, "b.py": FAILS})
    rows = run(made(tmp_path, found))
    assert sorted(row.status for row in rows) == ["crashed", "ok"]
    again = made(tmp_path, found)
    assert (list(again.to_run), again.cached_failures) == ([], 1)
    assert {each.outcome.row for each in again.cached} == set(rows)
    assert all(each.cached for each in again.cached)


def test_failures_are_run_again_when_asked(tmp_path: Path) -> None:
    found = listed(tmp_path, {"a.py": HONEST, "b.py": FAILS})
    run(made(tmp_path, found))
    again = made(tmp_path, found, retry_failed=True)
    assert [found[position].planner.label for position in again.to_run] == [str(tmp_path / "b.py")]
    run(again)
    assert len(Store.open(tmp_path / "store").rows()) == 3
    fresh = made(tmp_path, found, fresh=True)
    assert sorted(fresh.to_run) == [0, 1]
    run(fresh)
    store = Store.open(tmp_path / "store")
    assert (len(store.rows()), len(store.latest())) == (5, 2)


def test_an_edited_planner_is_run_again(tmp_path: Path) -> None:
    run(made(tmp_path, listed(tmp_path, {"a.py": HONEST})))
    assert made(tmp_path, listed(tmp_path, {"a.py": HONEST})).to_run == []
    assert made(tmp_path, listed(tmp_path, {"a.py": HONEST + "\nEDITED = 1\n"})).to_run == [0]


def test_a_damaged_problem_is_written_anew_and_its_rows_stand(tmp_path: Path) -> None:
    found = listed(tmp_path, {"a.py": FAILS})
    run(made(tmp_path, found))
    (row,) = open_results(tmp_path / "store").rows
    (tmp_path / "store" / "objects" / row.problem_id[:2] / f"{row.problem_id}.json").write_bytes(b"")
    again = made(tmp_path, found)
    assert again.to_run == []
    assert again.store is not None
    (notice,) = again.store.notices
    assert f"problem {row.problem_id[:16]} was damaged or missing, it is written anew" in notice
    assert Store.open(tmp_path / "store").problem(row.problem_id).problem_id == row.problem_id
    assert made(tmp_path, found).store.notices == []  # type: ignore[union-attr]


@pytest.mark.parametrize("ruin", [Path.unlink, Path.touch])
def test_a_row_whose_plan_is_damaged_or_missing_is_run_again(tmp_path: Path, ruin: Any) -> None:
    found = listed(tmp_path, {"a.py": HONEST, "b.py": FAILS})
    run(made(tmp_path, found))
    row = next(row for row in open_results(tmp_path / "store").rows if row.plan_id)
    file = tmp_path / "store" / "objects" / row.plan_id[:2] / f"{row.plan_id}.json"
    file.unlink()
    file.touch()
    ruin(file)
    again = made(tmp_path, found)
    assert [found[position].planner.label for position in again.to_run] == [str(tmp_path / "a.py")]
    assert again.store is not None
    (notice,) = again.store.notices
    assert f"plan {row.plan_id[:16]}" in notice
    assert "1 trial with a damaged or missing plan, schedule or script run again" in notice
    run(again)
    store = Store.open(tmp_path / "store")
    assert digest(store.plan(row.plan_id)) == row.plan_id
    assert made(tmp_path, found).to_run == []


def test_rows_that_ran_side_by_side_stand_with_their_tag(tmp_path: Path) -> None:
    found = listed(tmp_path, {"a.py": HONEST})
    (row,) = [each.outcome.row for each in run_trials(HOST, made(tmp_path, found), Where(jobs=2))]
    assert row.parallel
    again = made(tmp_path, found)
    assert (list(again.to_run), again.beside) == ([], 1)
    assert "1 cached, 0 to run (1 cached rows ran beside other work: --fresh times all again)" in about_store(
        again
    )
    assert [each.outcome.row.parallel for each in again.cached] == [True]
    fresh = made(tmp_path, found, fresh=True)
    assert (fresh.to_run, fresh.beside) == ([0], 0)
    assert [row.parallel for row in run(fresh)] == [False]
    assert made(tmp_path, found).beside == 0


def test_a_comment_or_docstring_of_a_planner_runs_nothing_again(tmp_path: Path) -> None:
    run(made(tmp_path, listed(tmp_path, {"a.py": HONEST})))
    assert made(tmp_path, listed(tmp_path, {"a.py": f'"""Mine."""\n# edited\n{HONEST}\n# edited\n'})).to_run == []


def test_rows_from_before_the_version_of_the_model_are_read_and_run_again_once(tmp_path: Path) -> None:
    found = listed(tmp_path, {"a.py": HONEST})
    run(made(tmp_path, found))
    file = tmp_path / "store" / "rows.jsonl"
    line = msgspec.json.decode(file.read_bytes())
    del line["checksum"]  # lines had none then
    for field in ("model", "planning"):
        del line["inputs"][field]
    line["key"] = line["row"]["key"] = digest(line["inputs"])  # as it was: the source of the suite was in the key
    file.write_bytes(msgspec.json.encode(line) + b"\n")
    again = made(tmp_path, found)
    assert (list(again.to_run), again.cached) == ([0], [])
    run(again)
    assert made(tmp_path, found).to_run == []
    results = open_results(tmp_path / "store")
    assert len(results.rows) == 1
    assert "1 rows of older code are left out" in results.notices[-1]


def test_a_planner_edited_while_it_runs_is_not_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "a.py"

    def search_beside_an_editor(*arguments: Any) -> TimedSearch:
        done = timed_search(*arguments)
        script.write_text(f"{HONEST}\nEDITED = 1\n")
        return done

    monkeypatch.setattr("pipebench.bench.trials.trial.timed_search", search_beside_an_editor)
    (row,) = run(made(tmp_path, listed(tmp_path, {"a.py": HONEST})))
    assert (row.status, row.notices[-1]) == ("ok", "its source changed while it ran: the row is not stored")
    assert Store.open(tmp_path / "store").rows() == []


def test_rounds_are_trials_of_their_own(tmp_path: Path) -> None:
    rows = run(made(tmp_path, listed(tmp_path, {"a.py": HONEST}, rounds=3)))
    assert sorted(row.repetition for row in rows) == [0, 1, 2]
    assert len({row.key for row in rows}) == 3


@pytest.mark.parametrize("seed", range(5))
def test_planners_are_interleaved_in_an_order_that_the_seed_fixes(tmp_path: Path, seed: int) -> None:
    found = listed(tmp_path, {f"{name}.py": HONEST for name in "abcd"}, rounds=4)
    order = running_order(found, seed)
    assert sorted(order) == list(range(16))
    assert order == running_order(found, seed)
    rounds = [[found[position] for position in order[start : start + 4]] for start in range(0, 16, 4)]
    for number, one in enumerate(rounds):
        assert {trial.repetition for trial in one} == {number}
    labels = [[trial.planner.label for trial in one] for one in rounds]
    assert labels[1] == labels[0][::-1]
    assert labels[3] == labels[2][::-1]
    assert len({tuple(running_order(found, other)) for other in range(20)}) > 10
