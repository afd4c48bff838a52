"""pipebench show, of a store: its rows, and one plan of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pipebench.bench.store import Store
from pipebench.domain.schedule import FiniteSchedule
from pipebench.domain.value import digest
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored
from tests.cli.command_line import CommandLine

OTHER = FiniteSchedule(
    lanes=(replace(SCHEDULE.lanes[0], kinds="FBFB", micro_batch=(0, 0, 1, 1)), SCHEDULE.lanes[1])
)
"""Another order of the same plan."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A plan in two orders, and another plan."""
    store = Store.open(tmp_path / "results")
    last = PLAN.stages[1]
    moved = replace(PLAN, stages=(PLAN.stages[0], replace(last, in_flight=2)))
    for number, plan, schedule in ((0, PLAN, SCHEDULE), (1, PLAN, OTHER), (2, moved, SCHEDULE)):
        ids = {"plan_id": digest(plan), "schedule_id": digest(schedule)}
        store.append(stored(number, **ids, scheduler=f"s{number}"), PROBLEM, plan, schedule)
    return tmp_path / "results"


def test_a_store_without_rows_says_so(pipebench: CommandLine, tmp_path: Path) -> None:
    Store.open(tmp_path / "results")
    done = pipebench("show", str(tmp_path / "results"))
    assert (done.code, done.out) == (0, "no rows: no trial has ended yet\n")


def planned(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    return value


def test_a_plan_in_several_orders_is_refused_with_what_tells_its_rows_apart(
    pipebench: CommandLine, folder: Path
) -> None:
    done = pipebench("show", str(folder), "--plan", digest(PLAN)[:12])
    assert (done.code, done.out) == (2, "")
    assert "has that plan in 2 rows that differ" in done.err
    for number, schedule in ((0, SCHEDULE), (1, OTHER)):
        row = stored(number)
        assert f"--row {row.key[:12]}: mine[depth=2], sync, scheduler s{number}, problem " in done.err
        assert f"{PROBLEM.problem_id[:12]}, schedule {digest(schedule)[:12]}" in done.err


def test_a_row_is_named_by_the_start_of_its_key(pipebench: CommandLine, folder: Path, tmp_path: Path) -> None:
    for number, kinds in ((0, "FFBB"), (1, "FBFB")):
        out = tmp_path / f"{number}.json"
        done = pipebench("show", str(folder), "--row", stored(number).key[:10], "--json", "-o", str(out))
        assert done.code == 0, done.err
        for shown in (planned(done.out), json.loads(out.read_text())["content"]):
            assert shown["schedule"]["lanes"][0]["kinds"] == kinds
            assert shown["scheduler"] == f"s{number}"


def test_plan_and_row_together_name_a_row(pipebench: CommandLine, folder: Path) -> None:
    both = ("--plan", digest(PLAN)[:12], "--row")
    done = pipebench("show", str(folder), *both, stored(1).key, "--json")
    assert planned(done.out)["scheduler"] == "s1"
    other = pipebench("show", str(folder), *both, stored(2).key)
    assert (other.code, "no plan of that id: --plan" in other.err) == (2, True)


def test_rows_with_the_same_plan_in_the_same_order_are_one(pipebench: CommandLine, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "results")
    for number in range(2):
        ids = {"plan_id": digest(PLAN), "schedule_id": digest(SCHEDULE)}
        store.append(stored(number, **ids, scheduler=f"s{number}"), PROBLEM, PLAN, SCHEDULE)
    done = pipebench("show", str(tmp_path / "results"), "--plan", digest(PLAN), "--json")
    assert done.code == 0, done.err
    assert planned(done.out)["scheduler"] == "s0"


def test_a_row_that_is_not_there_lists_those_that_are(pipebench: CommandLine, folder: Path) -> None:
    done = pipebench("show", str(folder), "--row", "zzz")
    assert done.code == 2
    assert "no plan of that id: --row zzz" in done.err
    assert all(stored(number).key[:12] in done.err for number in range(3))
