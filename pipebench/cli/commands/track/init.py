"""pipebench track init: the nightly workflow of a repository."""

import re
from pathlib import Path

import click

from pipebench.cli.commands.track.options import duration_s
from pipebench.cli.commands.track.record import REGIMES
from pipebench.cli.completion import of_slot, some_of, suites
from pipebench.cli.parameters import REAL, OneOf
from pipebench.cli.terminal import say
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.track.workflow.nightly import Nightly

WITH_BENCHMARKS = " pytest-benchmark"
CONSTRAINTS = re.compile(r"(?<!\S)(-c|--constraint)\b")


@click.command()
@click.option(
    "--planners", shell_complete=some_of(of_slot("planners")), multiple=True, help="As of `track record`."
)
@click.option("--suite", "suites", shell_complete=some_of(suites), multiple=True, help="As of `track record`.")
@click.option("--regime", type=OneOf(REGIMES), help="As of `track record`.")
@click.option("--timeout", type=REAL, help="As of `track record`.")
@click.option("--budget", default=Nightly.budget, show_default=True, help="Time for a night.")
@click.option("--branch", default=Nightly.branch, show_default=True, help="Where the history is kept.")
@click.option("--cron", default=Nightly.cron, show_default=True, help="When, in UTC.")
@click.option(
    "--benchmarks",
    default="",
    help="Benchmarks of pytest-benchmark to run each night: what pytest is given, such as tests/benchmarks.",
)
@click.option(
    "--install",
    help="The command that installs the planner  "
    f"[default: {Nightly.install}; with --benchmarks{WITH_BENCHMARKS} too]",
)
@click.option("--python", default=Nightly.python, show_default=True, help="The version of Python.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path(".github/workflows/nightly.yml"),
    show_default=True,
)
@click.option("--force", is_flag=True, help="Replace a file that says something else.")
@click.pass_context
def command(
    ctx: click.Context,
    planners: tuple[str, ...],
    suites: tuple[str, ...],
    regime: str | None,
    timeout: float | None,
    budget: str,
    branch: str,
    cron: str,
    benchmarks: str,
    install: str | None,
    python: str,
    output: Path,
    force: bool,
) -> int:
    """Write a GitHub workflow that records and checks a night, with the history on a branch of its own.

    The job that runs planners may only read; the one that writes runs none, and only adds to the history. Actions
    are named by their commits. Solvers and numerical packages have the versions of constraints.txt, which is
    written where there is none, with those that are installed here. Suites must be there: names, or files.
    """
    from pipebench.bench.suites.selection import suites_named
    from pipebench.formats.files import read_file, write_file

    suites_named(suites)
    option = next(param for param in ctx.command.params if param.name == "budget")
    budget_s = duration_s(ctx, option, budget)
    record = [word for name in planners for word in ("--planners", name)]
    record += [word for name in suites for word in ("--suite", name)]
    record += [] if regime is None else ["--regime", regime]
    record += [] if timeout is None else ["--timeout", f"{timeout:g}"]
    usual = Nightly.install + (WITH_BENCHMARKS if benchmarks else "")
    install = install or usual
    said = {"--branch": (branch, Nightly.branch), "--cron": (cron, Nightly.cron), "--benchmarks": (benchmarks, "")}
    said |= {"--install": (install, usual), "--python": (python, Nightly.python)}
    others = [word for option, (value, usual) in said.items() if value != usual for word in (option, value)]
    again = ["--budget", budget] if budget != Nightly.budget else []
    nightly = Nightly(
        command=("pipebench", "track", "init", *record, *again, *others),
        record=tuple(record),
        branch=branch,
        budget_s=budget_s,
        budget=budget,
        cron=cron,
        install=install,
        python=python,
        benchmarks=benchmarks,
    )
    data = nightly.text.encode()
    if output.exists() and not force and read_file(output) != data:
        raise PipebenchError(f"{str(output)!r} is there and says something else", "replace it with --force")
    write_file(output, data)
    say(f"{output} written: commit it; the history goes to the branch {branch}", err=True)
    _name_missing(planners)
    if CONSTRAINTS.search(install):
        _keep_versions()
    else:
        say(
            "note: this --install names no constraints (-c FILE): versions of solvers may change overnight",
            err=True,
        )
    return 0


def _name_missing(planners: tuple[str, ...]) -> None:
    """Says which planners are not installed here. It is no error: the workflow may install them."""
    from pipebench.cli.application import open_host
    from pipebench.hooks.syntax import parse_references

    here = open_host().slot("planners") if planners else {}
    for each in parse_references(planners):
        if not (each.is_script or each.is_program or each.name in here):
            say(
                f"note: planner {each.name!r} is not installed here ({nearest(each.name, here)}); "
                "a night fails where --install does not bring it",
                err=True,
            )


def _keep_versions() -> None:
    """The file of constraints of this folder: made, or looked through."""
    from pipebench.formats.files import read_file, write_file
    from pipebench.track.workflow.constraints import FILE, installed_versions, unpinned

    file = Path(FILE)
    if not file.exists():
        write_file(file, installed_versions().encode())
        say(f"{file} written with the versions that are installed here: commit it", err=True)
    elif left := unpinned(read_file(file).decode("utf-8", "replace")):
        say(f"note: {file} leaves the versions of {', '.join(left)} open", err=True)
