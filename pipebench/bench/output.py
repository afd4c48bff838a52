"""A folder with the rows of a comparison and the plans behind them."""

from pathlib import Path

from pipebench.bench.trial import Outcome
from pipebench.domain.document import PlannedProblem, Rows
from pipebench.formats.native import write_document


def write_outcomes(folder: Path, outcomes: list[Outcome]) -> None:
    """rows.json, and plans/<plan id>.json for every plan. Raises PipebenchError when it cannot be written."""
    write_document(folder / "rows.json", "rows", Rows(rows=tuple(o.row for o in outcomes)))
    for outcome in outcomes:
        if outcome.plan is not None and outcome.row.plan_id is not None:
            planned = PlannedProblem(
                problem=outcome.problem,
                plan=outcome.plan,
                schedule=outcome.schedule,
                scheduler=outcome.row.scheduler,
                planner=outcome.row.planner,
            )
            write_document(folder / "plans" / f"{outcome.row.plan_id[:16]}.json", "plan", planned)
