"""Reports in every form that was asked for, written before anything else can go wrong."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.application import console

if TYPE_CHECKING:
    from pipebench.report.tracking.blocks import Report


def prepare(html: Path | None, markdown: Path | None) -> None:
    """Try whether the files can be written. Raises PipebenchError."""
    from pipebench.formats.files import prepare_file

    for path in (html, markdown):
        if path is not None:
            prepare_file(path)


def write(report: "Report", html: Path | None, markdown: Path | None) -> None:
    """The files that were named. Raises PipebenchError."""
    from pipebench.formats.files import write_file
    from pipebench.report.tracking.html import html as as_html
    from pipebench.report.tracking.markdown import markdown as as_markdown

    for path, text in ((html, as_html), (markdown, as_markdown)):
        if path is not None:
            write_file(path, text(report).encode())
            click.echo(f"{path} written", err=True)


def show(report: "Report") -> None:
    """On the terminal."""
    from pipebench.report.tracking.text import print_report

    print_report(console(), report)
