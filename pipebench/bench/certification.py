"""Certificates of stored rows and plan files: which plans, the files, and whether a store says the same."""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipebench.bench.store.mistaken import document_kind, is_zip
from pipebench.bench.store.results import HINT, Results, open_results
from pipebench.certificates.check import Proven, check
from pipebench.certificates.document import Refused, opened, read
from pipebench.certificates.write import BoundParts, NoCertificate, about_part, certificate
from pipebench.costs.quantise import NS_PER_S
from pipebench.documents.document import PlannedProblem
from pipebench.documents.naming import in_words, taken_by
from pipebench.documents.units import readable_seconds
from pipebench.domain.errors import ExitCode, PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem, RegimeMode
from pipebench.domain.row import Row
from pipebench.domain.schedule import Schedule
from pipebench.domain.value import digest
from pipebench.formats.documents import read_any_document
from pipebench.formats.files import write_file
from pipebench.system.files import reason_of

NAME_LETTERS = 12
"""Of a row's key, for the name of its certificate."""
IDS = "problem_id", "plan_id", "schedule_id"
"""Of what a certificate is about: in its part `about`, and in rows."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A plan that may be certified. key: of its row, or the id of its plan. row: None for a plan file.

    ids: of its problem, its plan and its schedule; None where one is missing.
    behind: reads its problem, plan and schedule, and raises PipebenchError where one is missing.
    """

    key: str
    planner: str
    scheduler: str
    model: str
    cluster: str
    regime: RegimeMode
    row: Row | None
    ids: tuple[str, str, str] | None
    behind: Callable[[], tuple[Problem, Plan, Schedule]]

    def about(self) -> dict[str, str]:
        """What the certificate says of where it comes from."""
        names = "planner", "scheduler", "model", "cluster"
        return {"row": self.key, **{name: str(getattr(self, name)) for name in names}}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a subject: its certificate in a file, or the reason why there is none.

    seconds: it took. stood: whether the file was there. time_ns, bound_ns: what the certificate claims.
    """

    subject: Subject
    seconds: float
    file: Path | None = None
    reason: str = ""
    stood: bool = False
    time_ns: int = 0
    bound_ns: int = 0
    size_bytes: int = 0


def subjects(source: str, keys: Sequence[str] = (), planners: Sequence[str] = ()) -> list[Subject]:
    """The plans of a store, a packed store or a plan file.

    keys: the start of those of rows. planners: their names, without options or with them. Empty: all.
    Raises PipebenchError where there is none, and for rows of `compare --json`, which hold no plans.
    """
    if not os.path.isdir(source) and not source.endswith(".zip"):
        kind, value = read_any_document(source)
        if isinstance(value, PlannedProblem):
            return [_of_plan(value, source)]
        if kind != "rows":
            raise PipebenchError(f"{source!r} holds {in_words(kind)}", f"{HINT}, or a plan file")
        hint = "run `compare --out STORE` and certify the store: rows alone hold no plans"
        raise PipebenchError(f"{source!r} holds rows without their plans", hint)
    results = open_results(source)
    chosen = [
        _of_row(results, row)
        for row in results.rows
        if (not keys or row.key.startswith(tuple(keys)))
        and (not planners or row.planner in planners or row.planner.partition("[")[0] in planners)
    ]
    if not chosen:
        raise PipebenchError(f"{source!r} has no such row", "leave out --row and --planner", ExitCode.NOTHING_RAN)
    return chosen


def _of_row(results: Results, row: Row) -> Subject:
    def behind() -> tuple[Problem, Plan, Schedule]:
        if row.status != "ok" or row.plan_id is None:
            raise NoCertificate(f"the row has no plan: {row.status}")
        if row.schedule_id is None:
            raise NoCertificate(
                "the row has no schedule", "run its trial again in a new store: compare --out STORE"
            )
        found = results.behind
        return found.problem(row.problem_id), found.plan(row.plan_id), found.schedule(row.schedule_id)

    return Subject(
        row.key,
        row.planned_by,
        row.scheduler,
        row.subject,
        row.cluster,
        row.regime,
        row,
        (row.problem_id, row.plan_id, row.schedule_id) if row.plan_id and row.schedule_id else None,
        behind,
    )


def _of_plan(planned: PlannedProblem, source: str) -> Subject:
    def behind() -> tuple[Problem, Plan, Schedule]:
        if planned.schedule is None:
            raise PipebenchError(f"{source!r} holds no schedule", "make it with `pipebench plan … -o`")
        return planned.problem, planned.plan, planned.schedule

    problem, plan_id = planned.problem, digest(planned.plan)
    return Subject(
        plan_id,
        planned.planner,
        planned.scheduler,
        problem.profile.name,
        problem.cluster.name,
        problem.regime.mode,
        None,
        (problem.problem_id, plan_id, digest(planned.schedule)) if planned.schedule is not None else None,
        behind,
    )


def certify(subject: Subject, folder: Path, bounds: BoundParts | None = None, fresh: bool = False) -> Outcome:
    """Write the certificate of a plan into a folder; of one that has none say why.

    One that stands there already is left as it is. bounds: of those before it. fresh: write it anew all the same.
    """
    begun = time.perf_counter()
    file = folder / f"{subject.key[:NAME_LETTERS]}.json"
    claims = None if fresh else _standing(subject, file)
    if claims is not None:
        return Outcome(subject, time.perf_counter() - begun, file, "", True, *claims)
    try:
        made = certificate(*subject.behind(), subject.about(), bounds)
        proven, size_bytes = made.proven, len(made.data)
        reason = _other_figures(subject.row, proven.time_ns, proven.bound_ns)
    except PipebenchError as error:
        reason = str(error)
    if reason:
        return Outcome(subject, time.perf_counter() - begun, None, reason)
    write_file(file, made.data)
    seconds = time.perf_counter() - begun
    return Outcome(subject, seconds, file, "", False, proven.time_ns, proven.bound_ns, size_bytes)


def _standing(subject: Subject, file: Path) -> tuple[int, int, int] | None:
    """Time and bound in ns that a whole certificate of this subject claims, made by this version, and its bytes;
    None where the file is none. Its proof is not followed: that is for `verify`.
    """
    if subject.ids is None or not file.exists():
        return None
    try:
        data = read(str(file))
        content = opened(data)
        about, claims = content.part("about"), content.part("claims")
        time_ns, bound_ns = claims.number("time_ns"), claims.number("bound_ns")
    except (Refused, OSError):
        return None
    if about.value != about_part(subject.about(), *subject.ids) or _other_figures(subject.row, time_ns, bound_ns):
        return None
    return time_ns, bound_ns, len(data)


def _other_figures(row: Row | None, time_ns: int, bound_ns: int) -> str:
    """Where the row has other figures than are proven now; '' where it has the same."""
    if row is None:
        return ""
    for what, said, found in (
        ("simulated time", row.simulated_s, time_ns),
        ("bound", row.bound_s, bound_ns),
    ):
        if said is not None and said != found / NS_PER_S:
            there, here = readable_seconds(said), readable_seconds(found / NS_PER_S)
            if there == here:
                there, here = f"{said * NS_PER_S:.0f} ns", f"{found} ns"
            return f"its row has a {what} of {there}, this version computes {here}: run its trial again"
    return ""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a file proves, or why and where it is refused."""

    path: str
    proven: Proven | None
    reason: str = ""


def certificate_files(paths: Sequence[str]) -> Iterator[str]:
    """The files, and of each folder its files that end in .json. Raises PipebenchError for a folder of none."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        found = sorted(str(file) for file in Path(path).glob("*.json"))
        if not found:
            raise PipebenchError(f"{path!r} has no certificates (*.json)", "write some with `certify STORE -o`")
        yield from found


def verify(path: str, store: Results | None = None, bounds: BoundParts | None = None) -> Verification:
    """Check a certificate; store: and whether its tables are those of the problem and the plan that it keeps.
    bounds: of those before it.
    """
    try:
        data = read(path)
        proven = check(data)
        reason = "" if store is None else _against(data, proven, store, bounds)
    except Refused as refused:
        return Verification(path, None, _other_document(path) or str(refused))
    except OSError as error:
        return Verification(path, None, f"cannot be read: {reason_of(error)}")
    return Verification(path, None if reason else proven, reason)


def _other_document(path: str) -> str:
    """What a refused file holds, where that is another document or a packed store; else ''."""
    try:
        packed, kind = is_zip(Path(path)), document_kind(Path(path))
    except PipebenchError:
        return ""
    if packed:
        return "it is a packed store, not a certificate (write some with `certify STORE -o`)"
    hint = "write its certificate with `certify FILE -o`" if kind == "plan" else taken_by(kind) if kind else ""
    return f"it holds {in_words(kind)}, not a certificate ({hint})" if kind else ""


def _against(data: bytes, proven: Proven, store: Results, bounds: BoundParts | None) -> str:
    """The first place where the certificate differs from the one that the store's objects give; '' for none."""
    about = proven.about
    try:
        problem, plan = store.behind.problem(about["problem_id"]), store.behind.plan(about["plan_id"])
        fresh = certificate(problem, plan, store.behind.schedule(about["schedule_id"]), about, bounds)
    except PipebenchError as error:
        return str(error)
    found = first_difference(json.loads(data)["content"], json.loads(fresh.data)["content"], "content")
    return found or _other_names(about, problem, store)


def _other_names(about: Mapping[str, str], problem: Problem, store: Results) -> str:
    """The first name of `about` that the store's row of this plan does not have; '' where it has all of them.

    A certificate of a plan file names its plan in place of a row: its planner is that of a row with this plan.
    """
    of_plan = [row for row in store.rows if all(getattr(row, name) == about[name] for name in IDS)]
    named = next((row for row in of_plan if row.key == about["row"]), None)
    if named is not None:
        said = _of_row(store, named).about()
    elif of_plan and about["row"] == about["plan_id"]:
        planners = [name for row in of_plan for name in (row.planner, row.planned_by)]
        planner = about["planner"] if about["planner"] in planners else planners[0]
        said = {"planner": planner, "model": problem.profile.name, "cluster": problem.cluster.name}
    else:
        return f"content.about.row is {_short(about['row'])}, the store has no such row of this plan"
    return first_difference({name: about[name] for name in said}, said, "content.about")


def first_difference(one: Any, other: Any, place: str) -> str:
    """The first place where two parsed documents differ, with both values; '' where they are equal."""
    if one == other and type(one) is type(other):
        return ""
    pairs: list[tuple[str, Any, Any]] = []
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        pairs = [(f"{place}.{name}", one[name], other[name]) for name in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{place}[{at}]", *both) for at, both in enumerate(zip(one, other, strict=True))]
    for where, left, right in pairs:
        found = first_difference(left, right, where)
        if found:
            return found
    return f"{place} is {_short(one)}, the store says {_short(other)}"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
