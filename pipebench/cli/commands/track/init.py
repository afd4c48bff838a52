"""pipebench track init: the nightly workflow of a repository."""

from pathlib import Path

import click

from pipebench.cli.commands.track.options import duration_s
from pipebench.cli.completion import of_slot, some_of, suites
from pipebench.cli.parameters import REAL
from pipebench.cli.terminal import say
from pipebench.domain.errors import PipebenchError

INSTALL, BRANCH, CRON, PYTHON = "python -m pip install .", "pipebench-history", "23 2 * * *", "3.11"


@click.command()
@click.option(
    "--planners", shell_complete=some_of(of_slot("planners")), multiple=True, help="As of `track record`."
)
@click.option("--suite", "suites", shell_complete=some_of(suites), multiple=True, help="As of `track record`.")
@click.option("--timeout", type=REAL, help="As of `track record`.")
@click.option("--budget", default="20m", show_default=True, help="Time for a night.")
@click.option("--branch", default=BRANCH, show_default=True, help="Where the history is kept.")
@click.option("--cron", default=CRON, show_default=True, help="When, in UTC.")
@click.option("--install", default=INSTALL, show_default=True, help="The command that installs the planner.")
@click.option("--python", default=PYTHON, show_default=True, help="The version of Python.")
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
    timeout: float | None,
    budget: str,
    branch: str,
    cron: str,
    install: str,
    python: str,
    output: Path,
    force: bool,
) -> int:
    """Write a GitHub workflow that records and checks a night, with the history on a branch of its own.

    The job that runs planners may only read; the one that writes runs none, and only adds to the history.
    """
    from pipebench.formats.files import read_file, write_file
    from pipebench.track.workflow import Nightly

    option = next(param for param in ctx.command.params if param.name == "budget")
    budget_s = duration_s(ctx, option, budget)
    record = [word for name in planners for word in ("--planners", name)]
    record += [word for name in suites for word in ("--suite", name)]
    record += [] if timeout is None else ["--timeout", f"{timeout:g}"]
    said = {"--branch": (branch, BRANCH), "--cron": (cron, CRON), "--install": (install, INSTALL)}
    said["--python"] = (python, PYTHON)
    others = [word for option, (value, usual) in said.items() if value != usual for word in (option, value)]
    again = ["--budget", budget] if budget != "20m" else []
    nightly = Nightly(
        command=("pipebench", "track", "init", *record, *again, *others),
        record=tuple(record),
        branch=branch,
        budget_s=budget_s,
        budget=budget,
        cron=cron,
        install=install,
        python=python,
    )
    data = nightly.text.encode()
    if output.exists() and not force and read_file(output) != data:
        raise PipebenchError(f"{str(output)!r} is there and says something else", "replace it with --force")
    write_file(output, data)
    say(f"{output} written: commit it; the history goes to the branch {branch}", err=True)
    return 0
