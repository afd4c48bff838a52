"""pipebench accuracy: predictions held against training iterations that others measured."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import one_of
from pipebench.cli.groups import invocation
from pipebench.cli.parameters import OneOf, WholeFrom
from pipebench.cli.terminal import console, print_json, say
from pipebench.documents.units import quantity
from pipebench.domain.errors import ExitCode
from pipebench.domain.limits import MOST_WORKERS


def _tables() -> Mapping[str, str]:
    """The table of runs that ships; files are completed by the shell."""
    return {"published": "published iterations, with their sources"}


@click.command()
@click.argument("runs", shell_complete=one_of(_tables))
@click.option(
    "--by",
    type=OneOf(["model", "source", "gpus", "degrees"]),
    default="model",
    show_default=True,
    help="What the runs of a group have in common.",
)
@click.option(
    "--calibration", type=click.Path(), help="Constants that `calibrate` fitted, for runs on their device."
)
@click.option("--alternatives", is_flag=True, help="Predict with every other value of what is assumed, too.")
@click.option(
    "--worst", type=WholeFrom(0), default=10, show_default=True, help="Runs with the largest errors to list."
)
@click.option("--jobs", type=WholeFrom(1), default=1, show_default=True, help="Processes side by side.")
@click.option("--json", "as_json", is_flag=True, help="Runs and figures as JSON on stdout.")
@click.option("--html", type=click.Path(path_type=Path), help="A page with predicted against measured, too.")
def command(
    runs: str,
    by: str,
    calibration: str | None,
    alternatives: bool,
    worst: int,
    jobs: int,
    as_json: bool,
    html: Path | None,
) -> int:
    """Predict measured training runs and say how far the predictions are off.

    RUNS is a CSV whose columns docs/reference/runs.md lists, or `published`: iterations that were published, with
    their sources, which ship with the suite. Each run becomes a problem whose degrees are all pinned; nothing is
    searched, and nothing is fitted to the runs. A run that the suite cannot express is listed with the reason, and
    what a source does not say is assumed aloud.
    """
    from pipebench.bench.accuracy.comparison import held_against
    from pipebench.bench.accuracy.reader import read_runs
    from pipebench.bench.searches.isolation.client import isolation
    from pipebench.cli.commands.planning.compare import checked_page_path
    from pipebench.cli.progress import long_work
    from pipebench.formats.calibrations import read_calibration
    from pipebench.formats.files import write_file
    from pipebench.report.html.accuracy_page import accuracy_page
    from pipebench.report.text.measurements.accuracy import print_accuracy

    page = checked_page_path(html)
    listed = read_runs(runs)
    tuning = None if calibration is None else read_calibration(calibration).tuning
    host = open_host()
    if jobs == 1:
        isolation().warm_up()
    with long_work(f"predicting {quantity(len(listed), 'run')} …") as working:
        made = held_against(
            host,
            listed,
            jobs=min(jobs, MOST_WORKERS),
            alternatives=alternatives,
            tuning=tuning,
            told=lambda done: working(f"predicting {quantity(len(listed), 'run')}: {done} done …"),
        )
    show_new_warnings(host)
    if as_json:
        print_json(made)
    else:
        print_accuracy(console(), made, by, worst)  # type: ignore[arg-type]
    if page is not None:
        again = shlex.join(["pipebench", *invocation().words])
        write_file(page, accuracy_page(made, "Predicted against measured", again).encode())
        say(f"{page} written ({quantity(len(made.rows), 'run')})", err=True)
    return ExitCode.OK if made.errors is not None else ExitCode.NOTHING_RAN
