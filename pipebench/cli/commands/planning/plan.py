"""pipebench plan: one plan, its stages, memory and bound."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.commands.planning.export import ALLOW_IDLE, FORMATS
from pipebench.cli.completion import of_slot, one_of, planners_and_best
from pipebench.cli.option_groups import HOW, OUTPUT, WHO, GroupedCommand, option
from pipebench.cli.parameters import (
    REAL,
    OneOf,
    WholeFrom,
    finite_seconds,
    no_wait_option,
    patience_s,
    share_or_none,
)
from pipebench.cli.terminal import console, print_json, say
from pipebench.cli.workload_options import SEED, chosen_workloads, workload_options
from pipebench.defaults import BEST
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.components import Ready
    from pipebench.bench.problems.workload import Workload
    from pipebench.bench.trials.trial import Outcome
    from pipebench.hooks.manager import Host


@click.command(cls=GroupedCommand)
@click.argument("planner", shell_complete=one_of(planners_and_best))
@option(WHO, "--regime", type=OneOf(["sync", "async"]), help="The regime (default: the planner's own).")
@option(
    WHO,
    "--scheduler",
    shell_complete=one_of(of_slot("schedulers")),
    help="A scheduler in place of the planner's default.",
)
@option(HOW, "--timeout", default=300.0, show_default=True, type=REAL, callback=finite_seconds, help="Seconds.")
@option(
    HOW,
    "--gap",
    type=REAL,
    callback=share_or_none,
    help="With best: end when the plan is so close to the bound, such as 0.02.",
)
@option(HOW, "--seed", default=0, type=SEED, show_default=True, help="Seed of everything random.")
@option(WHO, "--coarsen", type=WholeFrom(1), help="The planner sees at most so many blocks.")
@no_wait_option
@option(OUTPUT, "-o", "--output", type=click.Path(path_type=Path), help="Write the plan, problem embedded.")
@option(OUTPUT, "--export", "exported", type=OneOf(FORMATS), help="Then write it for a framework.")
@option(OUTPUT, "--allow-idle", is_flag=True, help=f"With --export: {ALLOW_IDLE.lower()}")
@option(OUTPUT, "--json", "as_json", is_flag=True, help="The row as JSON on stdout.")
@workload_options
def command(
    planner: str,
    regime: Any,
    scheduler: str | None,
    timeout: float,
    gap: float | None,
    seed: int,
    coarsen: int | None,
    no_wait: bool,
    output: Path | None,
    exported: str | None,
    allow_idle: bool,
    as_json: bool,
    **choice: Any,
) -> int:
    """Make one plan with PLANNER and show its stages, their memory and the proven bound.

    PLANNER `best` runs every planner that is able to, searches on from the best plans until --gap or --timeout,
    and keeps the best plan that fits; with --export, that the framework can express.
    """
    from pipebench.algorithms.planning import idle_devices
    from pipebench.bench.cage.calls import show_output
    from pipebench.bench.components import ready_planner, ready_scheduler
    from pipebench.check import check_schedule
    from pipebench.cli.progress import long_work
    from pipebench.documents.document import PlannedProblem
    from pipebench.formats.documents import write_document
    from pipebench.formats.files import is_standard_output, prepare_file
    from pipebench.hooks.syntax import parse_reference
    from pipebench.report.text.plans import print_plan, print_score

    host = open_host()
    ready = None if planner == BEST else ready_planner(host, parse_reference(planner))
    if ready is not None and gap is not None:
        raise PipebenchError(
            f"--gap is for the planner {BEST}, this one is {planner}", "leave it out, or plan with best"
        )
    if scheduler is not None:
        ready_scheduler(host, scheduler)
    with long_work("reading the model or profile …"):
        workloads = chosen_workloads(host, choice)
    if len(workloads) != 1:
        raise PipebenchError(
            f"{len(workloads)} workloads are selected, a plan is for one", "name one with --profile or --models"
        )
    if exported is not None and as_json:
        raise PipebenchError(
            "--export and --json both write to standard output", "write with -o, then export --json"
        )
    onto_stdout = output is not None and is_standard_output(output)
    if onto_stdout and as_json:
        raise PipebenchError("-o and --json both write to standard output", "give -o a file, or leave one out")
    if output is not None:
        prepare_file(output)
    show_new_warnings(host)
    if ready is None:
        outcome = _best(
            host, workloads[0], regime, timeout, gap or 0.0, scheduler, seed, coarsen or 0, exported, allow_idle
        )
    else:
        outcome = _one(
            host, workloads[0], ready, regime, timeout, scheduler, seed, coarsen or 0, no_wait, exported
        )
    row = outcome.row
    planned = None
    if outcome.plan is not None:
        planned = PlannedProblem(
            problem=outcome.problem,
            plan=outcome.plan,
            schedule=outcome.schedule,
            scheduler=row.scheduler,
            planner=row.planner,
        )
    try:  # what was found is printed first, whatever comes of the file
        if row.status == "crashed":
            show_output(row.output)
        if as_json:
            print_json(row)
        elif outcome.plan is None or outcome.schedule is None:
            raise PipebenchError(f"{row.planner}: {row.status}: {row.reason}", exit_code=ExitCode.SOME_FAILED)
        else:
            out = console(stderr=onto_stdout)
            verdict = check_schedule(outcome.problem, outcome.plan, outcome.schedule)
            print_plan(out, outcome.problem, outcome.plan, verdict)
            print_score(out, row, idle_devices(outcome.problem, outcome.plan))
            if row.status != "ok":
                raise PipebenchError(f"{row.planner}: {row.status}: {row.reason}", exit_code=ExitCode.SOME_FAILED)
            if exported is not None and planned is not None:
                from pipebench.cli.commands.planning.export import show_export

                say("")
                show_export(host, planned, exported, allow_idle=allow_idle, keep_order=scheduler is not None)
    finally:
        if output is not None and planned is not None:
            write_document(output, "plan", planned)
    return ExitCode.OK if row.status == "ok" else ExitCode.SOME_FAILED


def _one(
    host: "Host",
    workload: "Workload",
    ready: "Ready",
    regime: Any,
    timeout: float,
    scheduler: str | None,
    seed: int,
    coarsen: int,
    no_wait: bool,
    exported: str | None,
) -> "Outcome":
    """The planner's plan; with a target, in the best order that it runs."""
    from pipebench.bench.sweeps.run_plan import RunPlan
    from pipebench.bench.sweeps.sweep import Where, run_trials
    from pipebench.bench.trials.comparison import home_regime
    from pipebench.bench.trials.trial import Trial
    from pipebench.cli.progress import Progress
    from pipebench.formats.frameworks.targets import target_named

    regime = regime or home_regime(ready)
    target = None if exported is None else target_named(exported)
    if target is not None:
        target.require_some_plan(workload.problem(regime))
    trial = Trial(
        workload=workload,
        regime=regime,
        planner=ready,
        scheduler=scheduler,
        offered=() if target is None else target.schedulers(workload.problem(regime)),
        timeout_s=timeout,
        seed=seed,
        coarsen=coarsen,
    )
    agenda = RunPlan([trial], [0])
    with Progress(agenda) as progress:
        (finished,) = run_trials(host, agenda, Where(patience_s=patience_s(no_wait)), progress)
        progress.advance(finished.outcome)
    return finished.outcome


def _best(
    host: "Host",
    workload: "Workload",
    regime: Any,
    timeout: float,
    gap: float,
    scheduler: str | None,
    seed: int,
    coarsen: int,
    exported: str | None,
    allow_idle: bool,
) -> "Outcome":
    """The winner; how it won goes to stderr, but for what its row says as well."""
    from pipebench.bench.best import best
    from pipebench.cli.progress import about_compiling, solver_log
    from pipebench.formats.frameworks.targets import target_named
    from pipebench.report.text.tables import print_line
    from pipebench.report.units import with_readable_bytes

    target = None if exported is None else target_named(exported)
    if target is not None:
        target.require_some_plan(workload.problem(regime or "sync"))
    found = best(
        host,
        workload,
        regime or "sync",
        timeout_s=timeout,
        target=target,
        scheduler=scheduler,
        seed=seed,
        coarsen=coarsen,
        whole=exported is not None and not allow_idle,
        told=lambda name: say(f"planning with {name}", err=True),
        gap=gap,
        solved=solver_log(),
        compiling=lambda planners: say(about_compiling(planners), err=True),
    )
    said = found.winner.row.notices
    for line in (each for each in found.why if each not in said):
        print_line(console(stderr=True), with_readable_bytes(line))
    return found.winner
