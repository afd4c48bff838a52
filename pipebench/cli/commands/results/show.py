"""pipebench show: what is in a file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.completion import files, one_of, profiles
from pipebench.cli.terminal import console, print_json, say
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.domain.row import Row

MOST_ROWS = 16
"""Rows of devices, links and memory each that a terminal shows."""
MOST_PROBLEMS = 20
"""Problems whose tables are printed; of more the first."""


@click.command()
@click.argument("file", shell_complete=one_of(profiles))
@click.option("--plan", "plan_id", help="Of a store: the plan whose plan_id starts so.")
@click.option("--row", "key", help="Of a store: the plan of the row whose key starts so (see compare --json).")
@click.option(
    "--trace", shell_complete=files, help="Of a plan file: a measured trace of it, drawn below the simulated one."
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write that plan, problem embedded.")
@click.option("--picture", type=click.Path(path_type=Path), help="A plan's timeline, a profile's bars … (.svg).")
@click.option("--graph", type=click.Path(path_type=Path), help="A plan's stages as a graph (.svg).")
@click.option("--all", "whole", is_flag=True, help="Of rows: the tables of all problems, however many.")
@click.option("--json", "as_json", is_flag=True, help="The value as JSON.")
def command(
    file: str,
    plan_id: str | None,
    key: str | None,
    trace: str | None,
    output: Path | None,
    picture: Path | None,
    graph: Path | None,
    whole: bool,
    as_json: bool,
) -> int:
    """Show a plan, profile, set of rows or any other pipebench file, a foreign profile, or a store.

    A profile that ships goes by its name (`pipebench list profiles`).

    A store is a folder of `compare --out`, or a packed one: its rows are shown, or with --plan or --row one of its
    plans. A plan that was scored twice, as in both regimes, is told apart by --row.
    Of rows of more than 20 problems the first 20 tables are printed, unless --all.
    --picture draws the timeline of a plan (.svg, or .json for Perfetto), the operators of a profile, or the
    quality of rows against their search time.
    """
    if os.path.isdir(file) or file.endswith(".zip") or plan_id is not None or key is not None:
        kind, value = _from_store(file, plan_id, key)
    else:
        kind, value = _named_or_read(file)
    if output is not None:
        from pipebench.formats.documents import write_document

        if kind != "plan":
            raise PipebenchError(f"-o writes a plan, {file!r} gives {kind}", "name one with --plan or --row")
        write_document(output, "plan", value)
    _draw(kind, value, picture, graph)
    if as_json:
        print_json(value)
        return 0
    if trace is not None:
        return _gap(kind, value, trace)
    printers: dict[str, Any] = {"plan": _plan, "rows": _all_rows if whole else _rows, "profile": _profile}
    code: int | None = printers.get(kind, _other)(kind, value)
    return code or 0


def _named_or_read(file: str) -> tuple[str, Any]:
    """The kind and the value of a file, or of the profile that ships under the name.

    Raises PipebenchError; for another component or file that ships with the command that shows it.
    """
    from pipebench.bench.problems.plugin_sources import plugin_formats
    from pipebench.cli.application import open_host
    from pipebench.cli.shipped import kinds_named
    from pipebench.domain.errors import nearest
    from pipebench.formats.profiles.files import read_any
    from pipebench.formats.profiles.shipped import load_profile, profile_names

    if not os.path.lexists(file) and os.path.basename(file) == file:
        if file in profile_names():
            return "profile", load_profile(file)
        if kinds := kinds_named(open_host(), file):
            raise PipebenchError(f"there is no file {file!r}", f"for the {kinds[0]}: pipebench info {file}")
        if not Path(file).suffix:
            raise PipebenchError(
                f"there is neither a file nor a shipped profile {file!r}", nearest(file, profile_names())
            )
    return read_any(file, lambda: plugin_formats(open_host()))


def _gap(kind: str, value: Any, trace: str) -> int:
    from pipebench.bench.execution import gap
    from pipebench.bench.services import HostServices
    from pipebench.cli.application import open_host
    from pipebench.formats.documents import read_document
    from pipebench.report.text.measurements.runs import execution_lines

    if kind != "plan" or value.schedule is None:
        raise PipebenchError("--trace stands beside a plan file that holds a schedule", "make it with `plan -o`")
    services = HostServices(open_host())
    simulated = services.simulate(value.problem, value.plan, value.schedule)
    for line in execution_lines(
        gap(value, value.schedule, simulated, read_document(trace, "trace")), console().width
    ):
        say(line)
    return 0


def _from_store(path: str, plan_id: str | None, key: str | None) -> tuple[str, Any]:
    """The rows of a store, or one plan with its problem and schedule."""
    from pipebench.bench.store import open_results
    from pipebench.documents.document import PlannedProblem, Rows

    results = open_results(path)
    for notice in results.notices:
        say(f"warning: {notice}", err=True)
    if plan_id is None and key is None:
        return "rows", Rows(rows=results.rows)
    row = _named(path, results.rows, plan_id or "", key or "")
    behind = results.behind
    return "plan", PlannedProblem(
        problem=behind.problem(row.problem_id),
        plan=behind.plan(row.plan_id or ""),
        schedule=behind.schedule(row.schedule_id) if row.schedule_id else None,
        scheduler=row.scheduler,
        planner=row.planner,
    )


def _named(path: str, rows: "Sequence[Row]", plan_id: str, key: str) -> "Row":
    """The row that is meant; of rows with the same plan for the same problem in the same order the first.

    Raises PipebenchError where there is none, or more than one.
    """
    planned = [row for row in rows if row.plan_id]
    named = [row for row in planned if (row.plan_id or "").startswith(plan_id) and row.key.startswith(key)]
    said = " ".join(f"{name} {start}" for name, start in (("--plan", plan_id), ("--row", key)) if start)
    plans = {row.plan_id for row in named}
    if len(plans) != 1:
        known = sorted({row.key[:12] if key else (row.plan_id or "")[:12] for row in planned})
        raise PipebenchError(
            f"{path!r} has {'several plans' if named else 'no plan'} of that id: {said}",
            f"{'rows with a plan' if key else 'plans'}: {', '.join(known) or 'none'}",
        )
    apart = {(row.problem_id, row.schedule_id): row for row in reversed(named)}
    if len(apart) > 1:
        which = "; ".join(
            f"--row {row.key[:12]}: {row.planned_by}, {row.regime}, scheduler {row.scheduler or 'none'}, problem "
            f"{row.problem_id[:12]}, schedule {(row.schedule_id or 'none')[:12]}"
            for row in reversed(apart.values())
        )
        raise PipebenchError(
            f"{path!r} has that plan in {len(apart)} rows that differ: {said}", f"name one: {which}"
        )
    return named[0]


def _draw(kind: str, value: Any, picture: Path | None, graph: Path | None) -> None:
    from pipebench.report.pictures import write_graph, write_picture

    for path, write in ((picture, write_picture), (graph, write_graph)):
        if path is not None:
            write(path, kind, value)
            say(f"{path} written", err=True)


def _plan(kind: str, value: Any) -> int:
    """The plan; of one that is not valid its stages and the reason, with the exit code of bad input."""
    from pipebench.check import check_plan, require_ordered
    from pipebench.check.refusal import why
    from pipebench.cli.commands.planning.validate import verdict_of
    from pipebench.documents.units import quantity
    from pipebench.domain.schedule import PeriodicSchedule
    from pipebench.report.pattern import LEGEND, pattern_lines, pattern_of
    from pipebench.report.text.plans import print_bare_stages, print_plan
    from pipebench.report.text.tables import print_line

    del kind
    out = console()
    verdict = verdict_of(value)
    problem = value.problem
    print_line(
        out,
        f"plan by {value.planner or 'unknown'} for {problem.profile.name}, "
        f"{quantity(problem.cluster.accelerators, 'GPU')} of {problem.cluster.name}, mini-batch "
        f"{problem.mini_batch}, {problem.regime.mode}: {verdict.status}",
    )
    wrong = why(verdict)
    if wrong:
        print_line(out, wrong)
    if check_plan(problem, value.plan).status != "valid":
        print_bare_stages(out, value.plan)
        return ExitCode.USAGE
    print_plan(out, problem, value.plan, verdict)
    if value.schedule is not None:
        require_ordered(problem, value.plan, value.schedule)
    if value.schedule is not None and not isinstance(value.schedule, PeriodicSchedule):
        _timeline(out, value)
    if isinstance(value.schedule, PeriodicSchedule):
        for line in (*pattern_lines(pattern_of(problem, value.plan, value.schedule), out.width), LEGEND):
            out.print(line, markup=False, soft_wrap=True)
    return ExitCode.OK


def _timeline(out: Any, value: Any) -> None:
    from pipebench.bench.services import HostServices
    from pipebench.cli.application import open_host
    from pipebench.report.gantt.text import legend, peaks, timeline
    from pipebench.report.pictures import cut, plan_gantt
    from pipebench.report.text.tables import print_line

    whole = plan_gantt(value, HostServices(open_host()))
    drawn, left_out = cut(whole, MOST_ROWS)
    print_line(out, f"one mini-batch, simulated; peak memory: {peaks(whole)}")
    for line in timeline(drawn, out.width):
        out.print(line, markup=False, soft_wrap=True)
    print_line(out, legend(drawn))
    if left_out:
        print_line(out, f"{left_out} more rows: draw them with --picture")


def _rows(kind: str, value: Any) -> None:
    """The tables; of many problems the first."""
    from pipebench.report.problem_blocks import rows_by_problem
    from pipebench.report.text.comparisons.comparison import print_rows

    problems = rows_by_problem(value.rows)
    if len(problems) <= MOST_PROBLEMS:
        _all_rows(kind, value)
        return
    shown = list(problems.values())[:MOST_PROBLEMS]
    print_rows(console(), [row for same in shown for row in same])
    say("")
    count = f"the first {MOST_PROBLEMS} of {len(problems):,} problems"
    say(f"{count}: --all prints all, pipebench report has standings")


def _all_rows(kind: str, value: Any) -> None:
    from pipebench.report.text.comparisons.comparison import print_rows

    del kind
    if not value.rows:
        say("no rows: no trial has ended yet")
    print_rows(console(), value.rows)


def _profile(kind: str, value: Any) -> None:
    from pipebench.report.text.profiles import print_profile

    del kind
    print_profile(console(), value)


def _other(kind: str, value: Any) -> None:
    say(f"{kind}:")
    print_json(value)
