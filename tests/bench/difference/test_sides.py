"""What `diff` can be given, and one clear line for everything else."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from pipebench.bench.difference.operands import PlanSide, ResultsSide, open_side
from pipebench.bench.store.folder import Store
from pipebench.bench.store.keys import ComponentInputs, TrialInputs, trial_key
from pipebench.bench.store.pack import pack
from pipebench.bench.store.stored_rows import StoredRow
from pipebench.documents.document import PlannedProblem, Rows
from pipebench.domain.errors import PipebenchError
from pipebench.domain.result import PlanResult
from pipebench.formats.documents import write_document
from tests.bench.standings.made_rows import row
from tests.builders import chain_problem, cluster, stages_plan

PROBLEM = chain_problem([1, 2], [2, 4], cluster(2))
PLAN = stages_plan([[0], [1]])


def test_plans_of_all_kinds(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    write_document(path, "plan", PlannedProblem(problem=PROBLEM, plan=PLAN, planner="me", scheduler="1f1b"))
    assert open_side(str(path)) == PlanSide(str(path), PLAN, PROBLEM, None, "me", "1f1b")
    write_document(path, "bare-plan", PLAN)
    assert open_side(str(path)) == PlanSide(str(path), PLAN)
    write_document(path, "result", PlanResult(plan=PLAN, scheduler="own"))
    assert open_side(str(path)) == PlanSide(str(path), PLAN, scheduler="own")


def test_rows_as_a_file(tmp_path: Path) -> None:
    rows, path = (row("a", "p", 1.0), row("b", "p")), tmp_path / "rows.json"
    write_document(path, "rows", Rows(rows=rows))
    assert open_side(str(path)) == ResultsSide(str(path), rows)


def test_a_store_and_the_same_store_packed(tmp_path: Path) -> None:
    made = row("a", PROBLEM.problem_id, None, regime="async")
    inputs = TrialInputs(
        problem_id=PROBLEM.problem_id,
        regime="async",
        planner=ComponentInputs(name="a", source=""),
        timeout_s=1.0,
        host="",
    )
    key = trial_key(inputs)
    stored = StoredRow(
        key=key, finished_at="2025-01-01T00:00:00", planner="a", inputs=inputs, row=replace(made, key=key)
    )
    assert Store.open(tmp_path / "store").append(stored, PROBLEM)
    pack(tmp_path / "store", tmp_path / "packed.zip")
    for name in ("store", "packed.zip"):
        assert open_side(str(tmp_path / name)) == ResultsSide(str(tmp_path / name), (stored.row,))


def test_what_holds_neither(tmp_path: Path) -> None:
    with pytest.raises(PipebenchError, match=r"is not a store"):
        open_side(str(tmp_path))
    (tmp_path / "broken.zip").write_bytes(b"PK nothing")
    with pytest.raises(PipebenchError, match="cannot read"):
        open_side(str(tmp_path / "broken.zip"))
    write_document(tmp_path / "p.json", "problem", PROBLEM)
    with pytest.raises(PipebenchError, match="holds a problem, neither a plan nor rows"):
        open_side(str(tmp_path / "p.json"))
    with pytest.raises(PipebenchError, match="there is no file"):
        open_side(str(tmp_path / "missing.json"))
