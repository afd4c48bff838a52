"""pipebench report: stored results as a page or a table."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.application import open_host
from pipebench.cli.completion import files
from pipebench.cli.parameters import WholeFrom, tell_passed_on, with_output_option
from pipebench.cli.terminal import say
from pipebench.documents.units import quantity
from pipebench.domain.errors import PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.store.results import Results
    from pipebench.documents.document import PlannedProblem
    from pipebench.domain.row import Row
    from pipebench.report.text.console import SafeConsole

ENDINGS = (".html", ".svg", ".md", ".csv", ".tex")
PICTURE_COLUMNS = 100
"""Of the terminal that a picture shows, unless another number is said."""


@click.command()
@click.argument("results", shell_complete=files)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="A page (.html), the blocks of `compare` as a picture (.svg), or a table (.md, .csv, .tex).",
)
@click.option("--title", help="The heading of a page, the words that stand for a picture.")
@click.option("--columns", type=WholeFrom(40), help=f"Width of a picture  [default: {PICTURE_COLUMNS}]")
@with_output_option
def command(results: str, output: Path, title: str | None, columns: int | None, with_output: bool) -> int:
    """Write the rows of RESULTS, a store, a packed store or the rows of `compare --json`, as one file.

    The page needs no network. It says of each problem why its plans differ, and draws them on one time axis. Of
    a grid it draws a heat map and performance profiles. Below are a table to sort, each plan's stages, timeline
    and memory, and the command that repeats each row; all is filtered by what differs between problems. The
    picture has what `compare` prints of these rows. Absolute paths, command lines beyond a program's name and
    printed output are left out.
    """
    from pipebench.documents.decoding import collector_paused

    with collector_paused():  # of large stores nearly all that is made is kept
        _write_report(results, output, title, columns, with_output)
    return 0


def _write_report(results: str, output: Path, title: str | None, columns: int | None, with_output: bool) -> None:
    import shlex

    from pipebench.bench.explanation import Explainer
    from pipebench.bench.redaction import Redaction
    from pipebench.bench.store.results import open_results
    from pipebench.formats.files import write_file
    from pipebench.report.chart.terminal import terminal_svg
    from pipebench.report.html.rows_page import rows_page
    from pipebench.report.rows import rows_csv, rows_markdown
    from pipebench.report.rows_latex import rows_latex
    from pipebench.report.text.comparisons.comparison import print_comparison

    if output.suffix not in ENDINGS:
        raise PipebenchError(f"cannot write a report to {str(output)!r}", f"end it in {' or '.join(ENDINGS)}")
    if columns is not None and output.suffix != ".svg":
        raise PipebenchError("--columns is about a picture", "end the file in .svg, or leave --columns out")
    opened = open_results(results)
    for notice in opened.notices:
        say(f"warning: {notice}", err=True)
    redaction = Redaction(opened.rows)
    place = redaction.text(results)
    passed = tuple(map(redaction.row, opened.rows))
    tell_passed_on(redaction.found, output, with_output)
    rows, place = (opened.rows, results) if with_output else (passed, place)
    keys = {row.key for row in rows if row.key} if opened.stored else set()

    def repeat(row: "Row") -> str:
        if row.key in keys:
            return shlex.join(["pipebench", "rerun", place, "--row", row.key[:12]])
        return "these rows were never in a store: compare --out keeps what it takes to repeat them"

    def plan_of(row: "Row") -> "PlannedProblem | None":
        return plan_behind(opened, row)

    heading = title or f"pipebench: {Path(results).name}"
    if output.suffix == ".csv":
        text = rows_csv(rows)
    elif output.suffix == ".md":
        text = rows_markdown(rows)
    elif output.suffix == ".tex":
        text = rows_latex(rows)
    elif output.suffix == ".svg":
        explainer = Explainer(open_host())

        def show(on: "SafeConsole") -> None:
            print_comparison(on, rows, plan_of, explainer)

        text = terminal_svg(show, columns or PICTURE_COLUMNS, heading)
    else:
        text = rows_page(open_host(), rows, plan_of, repeat, heading, source=place)
    write_file(output, text.encode())
    say(f"{output} written ({quantity(len(rows), 'row')})", err=True)


def plan_behind(results: "Results", row: "Row") -> "PlannedProblem | None":
    """The plan behind a row where the results hold it."""
    from pipebench.documents.document import PlannedProblem

    if not (results.stored and row.plan_id and row.schedule_id):
        return None
    behind = results.behind
    try:
        return PlannedProblem(
            problem=behind.problem(row.problem_id),
            plan=behind.plan(row.plan_id),
            schedule=behind.schedule(row.schedule_id),
            scheduler=row.scheduler,
            planner=row.planner,
        )
    except PipebenchError:
        return None  # the page says what it has
