"""Stores, plans and profiles as a stranger would pass them on."""

import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pipebench.bench.store import Store, trial_key
from pipebench.bench.store.lines import with_checksum
from pipebench.bench.store.stored_rows import StoredRow
from pipebench.documents.document import PlannedProblem
from pipebench.domain.profile import Provenance
from pipebench.formats.documents import write_document
from tests.bench.store.made import PLAN, PROBLEM, SCHEDULE, stored


def stranger_row(number: int, planner: str, kind: str = "program", **fields: Any) -> StoredRow:
    """A row whose planner is a program or a file. fields: of the row."""
    made = stored(number, **fields)
    inputs = replace(made.inputs, planner=replace(made.inputs.planner, name=planner, options={}))
    key = trial_key(inputs)
    row = replace(made.row, planner=planner, key=key)
    return replace(made, key=key, planner=planner, planner_kind=kind, inputs=inputs, row=row)


def stranger_store(folder: Path, *rows: StoredRow) -> Path:
    """A store with these rows, each with its plan."""
    store = Store.open(folder)
    for row in rows:
        store.append(row, PROBLEM, PLAN, SCHEDULE)
    return folder


def edit_rows(folder: Path, edit: Any) -> None:
    """Change the lines of a store by hand. edit: changes the document of each line in place."""
    file = folder / "rows.jsonl"
    documents = [json.loads(line) for line in file.read_text().splitlines()]
    for document in documents:
        edit(document)
        document.pop("checksum", None)
    file.write_bytes(b"".join(with_checksum(json.dumps(document).encode() + b"\n") for document in documents))


def plan_with_model(file: Path, model: str) -> Path:
    """A plan file whose profile says that it was captured from this model."""
    origin = Provenance(profiler="torch[group=node]", model=model)
    problem = replace(PROBLEM, profile=replace(PROBLEM.profile, provenance=origin))
    write_document(file, "plan", PlannedProblem(problem=problem, plan=PLAN, schedule=SCHEDULE))
    return file
