"""Run stored trials again: is the row the same, different, or can it not be run here?"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from pipebench.bench.components import Ready, ready_executor, ready_planner, ready_scheduler
from pipebench.bench.plan_entrants import ready_plan
from pipebench.bench.redaction import is_left_out
from pipebench.bench.store.journal import OBJECTS
from pipebench.bench.store.keys import TrialInputs
from pipebench.bench.store.objects import SCRIPT, object_name
from pipebench.bench.store.results import ObjectSource
from pipebench.bench.store.stored_rows import StoredRow, workload_of
from pipebench.bench.sweeps.run_plan import inputs_of
from pipebench.bench.trials.trial import Trial, run_trial
from pipebench.defaults import SIMULATOR
from pipebench.documents.document import PlannedProblem
from pipebench.domain.errors import PipebenchError
from pipebench.domain.problem import Problem
from pipebench.domain.row import Row
from pipebench.domain.value import Value
from pipebench.hooks.manager import Host
from pipebench.hooks.syntax import Reference, parse_reference
from pipebench.hooks.trust import OPTION, Trust

QUALITY = (
    "status",
    "plan_id",
    "schedule_id",
    "verdict",
    "fit",
    "termination",
    "counters",
    "claimed_s",
    "estimated_s",
    "simulated_s",
    "bound_s",
    "class_bound_s",
    "memory_bytes",
    "smallest_memory_bytes",
)
"""What a planner gives again for the same seed; times of search and measured times are not among it."""


class FieldChange(Value, frozen=True, kw_only=True):
    """One field with its value then and now, as text."""

    field: str
    before: str
    after: str


class Rerun(Value, frozen=True, kw_only=True):
    """A stored row run again. columns: of the row that differ; surroundings: what differs in code, packages and
    machine; reason: why it cannot be run here. search_ratio: CPU of the search now over then.
    """

    key: str
    planner: str
    scheduler: str
    problem: str
    mark: Literal["same", "different", "not runnable"]
    reason: str = ""
    columns: tuple[FieldChange, ...] = ()
    surroundings: tuple[FieldChange, ...] = ()
    search_ratio: float | None = None


def rerun(
    host: Host, stored: StoredRow, behind: ObjectSource, trust: Trust | None = None, source: str = "the store"
) -> Rerun:
    """Run the trial of a row once more, on the problem that is kept with it.

    trust: left out, a row whose components are not installed ones is not runnable. source: where the row was read.
    """
    row = stored.row
    about = Rerun(
        key=stored.key,
        planner=row.planner,
        scheduler=row.scheduler,
        problem=f"{row.regime}: {row.model} on {row.place}",
        mark="not runnable",
    )
    try:
        trial = _trial(host, stored, behind, trust or Trust(), source)
        inputs = inputs_of(host, trial)
    except PipebenchError as error:
        return replace(about, reason=str(error))
    now = run_trial(host, trial).row
    columns = tuple(_changes(_quality(row), _quality(now)))
    return replace(
        about,
        mark="different" if columns else "same",
        columns=columns,
        surroundings=(*_inputs_changes(stored.inputs, inputs), *_changes(_machine(row), _machine(now))),
        search_ratio=_ratio(row, now),
    )


def _trial(host: Host, stored: StoredRow, behind: ObjectSource, trust: Trust, source: str) -> Trial:
    if is_left_out(stored.row.planner) and stored.planner_kind != "plan":
        hint = "pack --with-output keeps paths and command lines"
        raise PipebenchError(f"a part of {stored.row.planner!r} was left out when the store was packed", hint)
    _require_file(stored, source)
    trust.require(_references(stored), source)
    problem, inputs = behind.problem(stored.row.problem_id), stored.inputs
    if stored.scheduler is not None:
        ready_scheduler(host, stored.scheduler)
    for name in stored.executors:
        ready_executor(host, name)
    return Trial(
        workload=workload_of(stored.row, problem),
        regime=problem.regime.mode,
        planner=_planner(host, stored, behind),
        scheduler=stored.scheduler,
        offered=inputs.offered,
        executors=stored.executors,
        repeat=inputs.repeat,
        timeout_s=inputs.timeout_s,
        memory_bytes=inputs.memory_bytes,
        coarsen=inputs.coarsen,
        seed=inputs.seed,
        repetition=stored.row.repetition,
        trusted=_models(stored, problem, trust, source),
    )


def _require_file(stored: StoredRow, source: str) -> None:
    """Raises PipebenchError for a planner whose file is not here, and says where its text is kept."""
    if stored.planner_kind != "script" or stored.script_id is None:
        return
    file = Path(parse_reference(stored.row.planner).name)
    if not os.path.isfile(file):
        text = f"its text is {OBJECTS}/{object_name(SCRIPT, stored.script_id)} in {source}"
        hint = f"look at it, save it as {file}, then add {OPTION}"
        raise PipebenchError(f"there is no file {str(file)!r} here; {text}", hint)


def _references(stored: StoredRow) -> Iterator[Reference]:
    """Every component that the row names and that is run again."""
    if stored.planner_kind != "plan":
        yield parse_reference(stored.row.planner)
    if stored.scheduler is not None:
        yield parse_reference(stored.scheduler)
    yield from map(parse_reference, (*stored.inputs.offered, *stored.executors))


def _models(stored: StoredRow, problem: Problem, trust: Trust, source: str) -> frozenset[str]:
    if all(name == SIMULATOR for name in stored.executors):
        return frozenset()
    return trust.models([problem.profile.provenance.captured], source)


def _planner(host: Host, stored: StoredRow, behind: ObjectSource) -> Ready:
    """A script is taken from where it was: the text that is kept is to look at, never run."""
    row = stored.row
    if stored.planner_kind != "plan":
        reference = parse_reference(row.planner)
        try:
            return ready_planner(host, reference)
        except PipebenchError as error:
            if stored.planner_kind == "plugin" and reference.name not in host.slot("planners"):
                whose = f"{row.distribution} {row.version}".strip()
                error.message += f"; the row is of {whose}, which offers none of that name here" if whose else ""
            raise
    if row.plan_id is None:
        raise PipebenchError(f"the plan {row.planner!r} is not kept")
    schedule = behind.schedule(row.schedule_id) if row.schedule_id is not None else None
    problem = behind.problem(row.problem_id)
    return ready_plan(
        row.planner, PlannedProblem(problem=problem, plan=behind.plan(row.plan_id), schedule=schedule)
    )


def _quality(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in QUALITY}


def _machine(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.environment.items() if name not in ("load", "seed")}


def _inputs_changes(before: TrialInputs, after: TrialInputs) -> Iterator[FieldChange]:
    yield from _changes(_flat(before), _flat(after))


def _flat(inputs: TrialInputs) -> dict[str, Any]:
    """Code and files of each component, the version of the model that scores, the source of the suite; by name."""
    parts = [inputs.planner, *inputs.executors, *([inputs.scheduler] if inputs.scheduler else [])]
    sources = {f"source of {part.name}": part.source for part in parts}
    called = {f"source of {name}": source for name, source in inputs.called.items()}
    files = {f"file of {part.name}[{name}]": content for part in parts for name, content in part.files.items()}
    whole = {"version of the model": inputs.model or None, "source of pipebench": inputs.host}
    return {**whole, **called, **sources, **files}


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[FieldChange]:
    for name in dict.fromkeys((*before, *after)):
        then, now = before.get(name), after.get(name)
        if then != now:
            yield FieldChange(field=name, before=_text(then), after=_text(now))


def _text(value: Any) -> str:
    if value is None:
        return "-"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) < 64 else f"{text[:12]}…"


def _ratio(before: Row, after: Row) -> float | None:
    if not before.search_cpu_s or after.search_cpu_s is None or before.parallel or after.parallel:
        return None
    return after.search_cpu_s / before.search_cpu_s
