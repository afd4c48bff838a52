"""pipebench compare: planners side by side on the same problems, as tables and as a page."""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import files, of_slot, some_of
from pipebench.cli.groups import invocation
from pipebench.cli.option_groups import HOW, OUTPUT, WHO, GroupedCommand, option
from pipebench.cli.parameters import (
    REAL,
    OneOf,
    WholeFrom,
    finite_seconds,
    memory_bytes,
    no_wait_option,
    one_backend,
    patience_s,
    trust_in_files,
    trust_option,
)
from pipebench.cli.terminal import console, print_json, say
from pipebench.cli.workload_options import SEED, chosen_workloads, selection, workload_options
from pipebench.defaults import COMPARED_PLANNERS, SIMULATOR
from pipebench.documents.units import quantity
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.explanation import Explainer
    from pipebench.bench.problems.workload import Workload
    from pipebench.bench.store import Store
    from pipebench.bench.suites import Settings
    from pipebench.bench.sweeps.run_plan import FinishedTrial, RunPlan
    from pipebench.bench.sweeps.shards import Shard
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.documents.document import PlannedProblem
    from pipebench.domain.row import Row
    from pipebench.hooks.manager import Host


FORGOTTEN = ("--planners", "--html", "--out")
"""Options that the command which repeats one row says anew, or has no need of."""


def write_page(
    path: Path, host: "Host", finished: "list[FinishedTrial]", store: "Store | None", explainer: "Explainer"
) -> None:
    """Write the page, as it is passed on. Raises PipebenchError when the file cannot be written.

    explainer: what it knows already is not simulated anew.
    """
    from pipebench.bench.redaction import Redaction
    from pipebench.formats.files import write_file
    from pipebench.report.html.rows_page import rows_page

    redaction = Redaction(each.outcome.row for each in finished)
    rows = [redaction.row(each.outcome.row) for each in finished]
    typed = tuple(map(redaction.text, invocation().words))
    plans = _plans_behind(finished, store)

    def repeat(row: "Row") -> str:
        if store is not None and row.key:
            return shlex.join(["pipebench", "rerun", redaction.text(str(store.path)), "--row", row.key[:12]])
        return shlex.join(["pipebench", *_without_options(typed, FORGOTTEN), "--planners", row.planner])

    command = shlex.join(["pipebench", *typed])
    page = rows_page(host, rows, plans, repeat, "pipebench compare", command=command, explainer=explainer)
    write_file(path, page.encode())
    say(f"{path} written ({quantity(len(rows), 'row')})", err=True)


def checked_page_path(path: Path | None) -> Path | None:
    """The path, before anything runs. Raises PipebenchError for another ending, a folder that is not there, or
    one in which nothing can be written.
    """
    from pipebench.formats.files import prepare_file

    if path is not None:
        if path.suffix not in (".html", ".htm"):
            raise PipebenchError(f"--html writes a page, not {str(path)!r}", "end it in .html")
        if not os.path.isdir(path.absolute().parent):
            raise PipebenchError(f"there is no folder {str(path.parent)!r} for {path.name!r}", "make it first")
        prepare_file(path)
    return path


def _plans_behind(
    finished: "Sequence[FinishedTrial]", store: "Store | None"
) -> "Callable[[Row], PlannedProblem | None]":
    """Finds the plan behind a row, whatever was done to the row to show it."""
    behind = {_plan_key(each.outcome.row): each for each in finished}
    return lambda row: _plan_of(behind[_plan_key(row)], store, row.planner)


def _plan_key(row: "Row") -> tuple[str, str | None, str | None]:
    return row.problem_id, row.plan_id, row.schedule_id


def _plan_of(each: "FinishedTrial", store: "Store | None", planner: str) -> "PlannedProblem | None":
    """planner: as it is shown."""
    from pipebench.documents.document import PlannedProblem

    row, plan, schedule = each.outcome.row, each.outcome.plan, each.outcome.schedule
    if plan is None and store is not None and row.plan_id:
        try:
            plan = store.plan(row.plan_id)
            schedule = store.schedule(row.schedule_id) if row.schedule_id else None
        except PipebenchError:
            return None  # the page says what it has
    if plan is None:
        return None
    return PlannedProblem(
        problem=each.outcome.problem, plan=plan, schedule=schedule, scheduler=row.scheduler, planner=planner
    )


def _without_options(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """Words of a command line without options that take a value."""
    kept: list[str] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word in options:
            skip = True
        elif not word.startswith(tuple(f"{option}=" for option in options)):
            kept.append(word)
    return kept


PLANNERS_HELP = (
    "Names, name[option=value], ./file.py or cmd:program, by commas. "
    "A cmd: reaches to the next comma outside quotes, such as cmd:./planner --opt 'a,b'[depth=3]."
)
PLANS_HELP = (
    "Plans to score beside the others: plan files, megatron:LAYOUT, or files with a Megatron layout, "
    "torchtitan's list of parts, or PipeDream's stage ids."
)
FAILURES = {
    "invalid": ("invalid_plan",),
    "infeasible": ("infeasible", "unsupported"),
    "error": ("timeout", "memory", "crashed"),
}


@click.command(cls=GroupedCommand)
@option(WHO, "--planners", shell_complete=some_of(of_slot("planners")), multiple=True, help=PLANNERS_HELP)
@option(WHO, "--plans", shell_complete=files, multiple=True, type=str, help=PLANS_HELP)
@option(WHO, "--regime", type=OneOf(["sync", "async"]), help="One regime in place of both.")
@option(
    WHO,
    "--schedulers",
    shell_complete=some_of(of_slot("schedulers")),
    multiple=True,
    help="Schedulers in place of the best of all.",
)
@option(
    WHO,
    "--executors",
    shell_complete=some_of(of_slot("executors")),
    help=f"Executors, by commas  [default: {SIMULATOR}]",
)
@option(HOW, "--repeat", type=WholeFrom(1), help="Warm searches to time in one trial  [default: 1]")
@option(HOW, "--rounds", default=1, type=WholeFrom(1), help="How often to run each trial, interleaved.")
@option(HOW, "--timeout", type=REAL, callback=finite_seconds, help="Seconds for one search  [default: 300]")
@option(HOW, "--search-memory", callback=memory_bytes, help="Memory for one search, such as 4GB.")
@option(HOW, "--seed", type=SEED, help="Seed of everything random  [default: 0]")
@option(WHO, "--coarsen", type=WholeFrom(1), help="Planners see at most so many blocks of operators.")
@option(OUTPUT, "--out", type=click.Path(path_type=Path), help="A store: keeps each row at once, and resumes.")
@option(HOW, "--fresh", is_flag=True, help="Run what the store holds already, too.")
@option(HOW, "--retry-failed", is_flag=True, help="Run crashes and timeouts of the store again.")
@option(HOW, "--shard", metavar="K/N", help="Only part K of N of the trials, such as 3/8; `merge` joins them.")
@option(HOW, "--array", is_flag=True, help="The shard of this task of a Slurm job array, in a store below --out.")
@option(HOW, "--jobs", type=WholeFrom(1), help="Trials side by side here (no search times to compare).")
@option(HOW, "--backend", type=OneOf(["loky", "dask"]), help="Where they run side by side.")
@option(HOW, "--scheduler-address", help="Of a Dask cluster, such as tcp://host:8786.")
@option(
    OUTPUT,
    "--fail-on",
    multiple=True,
    type=OneOf(list(FAILURES)),
    help="Exit code 1 when a row is so, and 0 for the rest.",
)
@no_wait_option
@trust_option
@option(OUTPUT, "--json", "as_json", is_flag=True, help="Rows of the named planners as JSON on stdout.")
@option(OUTPUT, "--html", type=click.Path(path_type=Path), help="A page with table, pictures and plans, too.")
@workload_options
def command(
    plans: tuple[str, ...],
    rounds: int,
    out: Path | None,
    fresh: bool,
    retry_failed: bool,
    shard: str | None,
    array: bool,
    jobs: int | None,
    backend: str | None,
    scheduler_address: str | None,
    fail_on: tuple[str, ...],
    no_wait: bool,
    trust: bool,
    as_json: bool,
    html: Path | None,
    **choice: Any,
) -> int:
    """Run planners on the same problems; the suite scores every plan and shows a proven bound beside it.

    Without models, profiles or a suite: the default suite. Without planners: those of papers, unless a suite names
    its own. Each planner runs in both regimes unless --regime is
    given; where it plans for one only, its plan is adapted to the other and the row says so. A plan that brings no
    schedule is scored under every scheduler that takes it, and the best counts.
    """
    from pipebench.bench.explanation import Explainer
    from pipebench.bench.searches.isolation.client import isolation
    from pipebench.bench.standings import best_rows
    from pipebench.bench.store import Store
    from pipebench.bench.suites import settle
    from pipebench.bench.suites.selection import chosen_suites
    from pipebench.bench.sweeps.run_plan import make_run_plan
    from pipebench.bench.trials.comparison import comparison_request, trials
    from pipebench.cli.progress import long_work
    from pipebench.documents.document import Rows
    from pipebench.hooks.syntax import split_list
    from pipebench.report.text.comparisons.comparison import print_comparison

    if (fresh or retry_failed) and out is None:
        raise PipebenchError("--fresh and --retry-failed are about a store", "name it with --out")
    part, out = _shard(shard, array, out)
    page = checked_page_path(html)
    where = replace(one_backend(jobs, backend, scheduler_address), patience_s=patience_s(no_wait))
    said = _settings(choice)
    host = open_host()
    if not where.parallel:
        isolation().warm_up()
    trusting = trust_in_files(trust)
    settings = settle(chosen_suites(selection(choice)), said, trusting)
    settings = _with_planners(settings, plans)
    paths = [path for text in plans for path in ([text] if text.startswith("megatron:") else split_list(text))]
    with long_work("reading models, profiles and suites …") as working:
        beside = not as_json or out is not None or page is not None

        def workloads() -> "Sequence[Workload]":
            return chosen_workloads(host, choice)

        request = comparison_request(host, workloads, settings, paths, rounds, trusting, yardstick=beside)
        working(f"making the trials of {quantity(len(request.workloads), 'workload')} …")
        listed = trials(request)
        store = Store.open(out) if out is not None else None
        working(f"looking up {quantity(len(listed), 'trial')} …")
        plan = make_run_plan(host, listed, store, fresh, retry_failed, part)
    if part is not None:
        say(f"{part}: {len(plan.trials)} of {quantity(len(listed), 'trial')}, kept in {out}", err=True)
    for notice in store.notices if store else ():
        say(f"warning: {notice}", err=True)
    show_new_warnings(host)
    finished, stopped = _run(host, plan, where)
    rows = [each.outcome.row for each in finished]
    cached = tuple(each.outcome.row.key for each in finished if each.cached)
    explainer = Explainer(host)
    if as_json:
        entered = tuple(row for row in rows if not row.yardstick)
        known = tuple(row.key for row in entered if row.key in cached)
        print_json(Rows(rows=entered, cached=known, best=best_rows(entered)))
    elif rows:
        print_comparison(console(), rows, _plans_behind(finished, store), explainer, cached, request.timeout_s)
    if page is not None and rows:
        write_page(page, host, finished, store, explainer)
    if stopped is not None:
        raise stopped
    return _exit_code(rows, fail_on)


def _shard(shard: str | None, array: bool, out: Path | None) -> "tuple[Shard | None, Path | None]":
    """The part of the sweep that is run here, and its store. Raises PipebenchError."""
    if shard is None and not array:
        return None, out
    from pipebench.bench.sweeps.shards import array_folder, parse_shard, shard_of_array

    if shard is not None and array:
        raise PipebenchError("--array says which shard it is, and so does --shard", "leave one of them out")
    if out is None:
        raise PipebenchError("a shard is kept in a store, to be merged with the others", "name it with --out")
    if shard is not None:
        return parse_shard(shard), out
    part = shard_of_array(os.environ)
    return part, array_folder(out, part)


def _with_planners(settings: "Settings", plans: tuple[str, ...]) -> "Settings":
    """The settings; where nothing is named to compare, with the planners of papers, which goes to stderr."""
    if settings.planners or plans:
        return settings
    names = ",".join(COMPARED_PLANNERS)
    say(f"no planner was named: comparing those of papers (--planners {names})", err=True)
    return replace(settings, planners=COMPARED_PLANNERS)


def _settings(choice: dict[str, Any]) -> Any:
    """What the command line says of components and limits, taken out of the options."""
    from pipebench.bench.suites import Settings
    from pipebench.hooks.syntax import split_list

    def listed(name: str) -> tuple[str, ...]:
        said = choice.pop(name)
        texts = (said,) if isinstance(said, str) else said or ()
        return tuple(part for text in texts for part in split_list(text))

    regime = choice.pop("regime")
    return Settings(
        planners=listed("planners"),
        regimes=(regime,) if regime else (),
        schedulers=listed("schedulers"),
        executors=listed("executors"),
        timeout_s=choice.pop("timeout"),
        memory_bytes=choice.pop("search_memory"),
        repeat=choice.pop("repeat"),
        seed=choice.pop("seed"),
        coarsen=choice.pop("coarsen"),
    )


def _run(host: "Host", plan: "RunPlan", where: "Where") -> "tuple[list[FinishedTrial], PipebenchError | None]":
    """All that is finished, in the order of the table, and what stopped the rest: the user, or a full disk."""
    from pipebench.bench.sweeps.sweep import run_trials
    from pipebench.cli.progress import Progress

    finished = list(plan.cached)
    stopped: PipebenchError | None = None
    with Progress(plan) as progress:
        try:
            for each in run_trials(host, plan, where, progress):
                finished.append(each)
                progress.advance(each.outcome)
        except KeyboardInterrupt:
            done = f"interrupted after {len(finished)} finished trials"
            stopped = PipebenchError(done, exit_code=ExitCode.INTERRUPTED)
        except PipebenchError as error:
            stopped = error
    return sorted(finished, key=lambda each: each.position), stopped


def _exit_code(rows: "list[Row]", fail_on: tuple[str, ...]) -> int:
    reached = {row.status for row in rows if not row.yardstick}
    if fail_on:
        statuses = {status for name in fail_on for status in FAILURES[name]}
        return ExitCode.CONDITION_FAILED if reached & statuses else ExitCode.OK
    return ExitCode.OK if reached <= {"ok"} else ExitCode.SOME_FAILED
