"""Options that several commands of `pipebench track` share, and reports in every form asked for."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.option_groups import HOW, OUTPUT, option
from pipebench.cli.terminal import console, print_json, say
from pipebench.domain.limits import LONGEST_WAIT_S

if TYPE_CHECKING:
    from pipebench.report.tracking.blocks import TrackingReport
    from pipebench.track.judgement.judgement import Judgement
    from pipebench.track.nights.history import History

DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h)?")
SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

history_option = option(
    HOW,
    "--history",
    type=click.Path(path_type=Path),
    default=Path("baselines"),
    show_default=True,
    help="Folder of the history.",
)
acknowledged_option = option(
    HOW,
    "--acknowledged",
    type=click.Path(path_type=Path),
    help="File of acknowledged changes  [default: acknowledged.toml in the history]",
)
html_option = option(OUTPUT, "--html", type=click.Path(path_type=Path), help="Write the report as HTML.")
markdown_option = option(
    OUTPUT, "--markdown", type=click.Path(path_type=Path), help="Write the report as Markdown."
)


def duration_s(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """A duration such as 90s, 20m or 1.5h, above zero. Raises click's usage error for others."""
    found = DURATION.fullmatch(value.strip())
    seconds = float(found[1]) * SECONDS[found[2]] if found else 0.0
    if not 0 < seconds <= LONGEST_WAIT_S:
        raise click.BadParameter(f"{value!r} is not a duration such as 90s, 20m or 1.5h", ctx, param)
    return seconds


def acknowledged_file(history: Path, said: Path | None) -> Path:
    """Where acknowledged changes stand."""
    from pipebench.track.judgement.acknowledgements import FILE

    return said if said is not None else history / FILE


def judged(history: "History", acknowledged: Path | None) -> "Judgement":
    """The judgement of a history at this moment. Raises PipebenchError: a file or a plan of it is damaged."""
    from pipebench.track.judgement.acknowledgements import read_acknowledged
    from pipebench.track.judgement.judgement import judge

    known = read_acknowledged(acknowledged_file(history.folder, acknowledged), named=acknowledged is not None)
    return judge(history, known, datetime.now(UTC))


def prepare(html: Path | None, markdown: Path | None) -> None:
    """Try whether the files can be written. Raises PipebenchError."""
    from pipebench.formats.files import prepare_file

    for path in (html, markdown):
        if path is not None:
            prepare_file(path)


def write(report: "TrackingReport", html: Path | None, markdown: Path | None) -> None:
    """The files that were named. Raises PipebenchError."""
    from pipebench.formats.files import write_file
    from pipebench.report.tracking.writers import html_report as as_html
    from pipebench.report.tracking.writers import markdown_report as as_markdown

    for path, text in ((html, as_html), (markdown, as_markdown)):
        if path is not None:
            write_file(path, text(report).encode())
            say(f"{path} written", err=True)


def show(report: "TrackingReport") -> None:
    """On the terminal."""
    from pipebench.report.tracking.writers import print_report

    print_report(console(), report)


def tell(report: "TrackingReport", html: Path | None, markdown: Path | None, value: object = None) -> None:
    """The files that were named; on stdout the value as JSON, or the report where there is none."""
    write(report, html, markdown)
    if value is not None:
        print_json(value)
    else:
        show(report)
