"""pipebench originals: the authors' own program, from the user's checkout, beside the suite's planner."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import one_of
from pipebench.cli.parameters import WholeFrom, finite_seconds
from pipebench.cli.terminal import console, print_json, say
from pipebench.documents.units import quantity
from pipebench.domain.errors import ExitCode, PipebenchError, unknown

if TYPE_CHECKING:
    from pipebench.bench.originals.comparison import OriginalComparison
    from pipebench.hooks.descriptors import Planner
    from pipebench.hooks.manager import Host


def _systems() -> Mapping[str, str]:
    return {name: planner.name for name, planner in _originals(open_host()).items()}


@click.command()
@click.argument("checkout", metavar="DIR", type=click.Path())
@click.option("--system", required=True, shell_complete=one_of(_systems), help="Whose code DIR is.")
@click.option("--yes", is_flag=True, help="Run that code. Without this nothing runs, and what would is printed.")
@click.option("--only", default="", metavar="TEXT", help="Only inputs, or labels, with this text in them.")
@click.option(
    "--timeout",
    type=float,
    default=60.0,
    show_default=True,
    callback=finite_seconds,
    help="Seconds for each search of either side.",
)
@click.option(
    "--pairs",
    type=WholeFrom(1),
    default=3,
    show_default=True,
    help="Runs of each side, in turns; one where theirs takes over 10 s.",
)
@click.option("--python", help="The interpreter of an original in Python; default: the one that runs pipebench.")
@click.option("--compiler", default="c++", show_default=True, help="The compiler of an original in C++.")
@click.option("--markdown", type=click.Path(path_type=Path), help="The table as a Markdown file, too.")
@click.option("--json", "as_json", is_flag=True, help="All rows and times as JSON on stdout.")
def command(
    checkout: str,
    system: str,
    yes: bool,
    only: str,
    timeout: float,
    pairs: int,
    python: str | None,
    compiler: str,
    markdown: Path | None,
    as_json: bool,
) -> int:
    """Run the authors' program beside our planner, on the inputs of its repository.

    DIR: your checkout of the authors' repository. Its code is RUN, with a time limit, confined to a scratch folder
    and without network where the kernel can do so; DIR is only read. Both sides search the same problem with the
    same options, in turns. Printed are the value of the best plan of each, whether they are equal, and the CPU
    time of each.

    Exit code 0 when all values that were found are equal, 1 when one differs that must not, 5 when a side failed,
    4 when nothing could be compared.
    """
    from pipebench.bench.originals.checkout import open_checkout
    from pipebench.bench.originals.comparison import Terms, hold_beside, summary
    from pipebench.bench.originals.problems import searches
    from pipebench.bench.originals.program import commands, default_python, make_ready
    from pipebench.bench.searches.isolation.client import isolation
    from pipebench.cli.commands.papers.reproduce import checked_markdown_path
    from pipebench.formats.files import write_file
    from pipebench.report.text.comparisons.originals import markdown as markdown_table
    from pipebench.report.text.comparisons.originals import print_originals
    from pipebench.system.scratch import scratch_folder

    page = checked_markdown_path(markdown)
    host = open_host()
    known = _originals(host)
    if system not in known:
        raise unknown("system", system, known)
    planner, interpreter = known[system], python or default_python()
    original = planner.original
    assert original is not None
    opened = open_checkout(checkout, original)
    chosen = searches(original, opened, only)
    running = commands(original, opened, interpreter, compiler)
    for line in running:
        say(f"{'runs' if yes else 'would run'} code of {original.repository}: {line}", err=True)
    if not yes:
        raise PipebenchError(f"it is not the suite's code: look at {checkout!r} first", "then add --yes to run it")
    if opened.commit not in ("", original.commit):
        say(f"commit {opened.commit[:12]}; the driver was tried with {original.commit[:12]}", err=True)
    isolation().warm_up()
    before = opened.state()
    with scratch_folder() as scratch:
        ready = make_ready(original, opened, scratch, interpreter, compiler)
        terms = Terms(planner.name, timeout, pairs)
        rows = hold_beside(host, ready, chosen, terms, _tell)
        made = summary(original, opened, ready, rows, running, timeout, before)
    show_new_warnings(host)
    if as_json:
        print_json(made)
    else:
        print_originals(console(), made)
    if page is not None:
        write_file(page, markdown_table(made).encode())
        say(f"{page} written ({quantity(len(made.rows), 'problem')})", err=True)
    return _exit_code(made)


def _tell(words: str) -> None:
    """What runs now, on a terminal. A moving line would need a thread, beside which nothing may be forked."""
    if sys.stderr.isatty():
        say(words, err=True)


def _originals(host: "Host") -> dict[str, "Planner"]:
    """The planners whose authors published a program, by its name."""
    from pipebench.hooks.descriptors import Planner

    planners = (each.component for each in host.slot("planners").values())
    return {
        planner.original.system: planner
        for planner in planners
        if isinstance(planner, Planner) and planner.original is not None
    }


def _exit_code(made: "OriginalComparison") -> ExitCode:
    if any(row.is_wrong for row in made.rows):
        return ExitCode.CONDITION_FAILED
    if made.count("failed"):
        return ExitCode.SOME_FAILED
    return ExitCode.OK if made.count("equal") or made.count("differs") else ExitCode.NOTHING_RAN
