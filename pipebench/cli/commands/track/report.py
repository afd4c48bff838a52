"""pipebench track report: the history as people read it."""

from pathlib import Path

import click

from pipebench.cli.commands.track import options
from pipebench.cli.commands.track.options import (
    acknowledged_option,
    history_option,
    html_option,
    markdown_option,
)


@click.command()
@history_option
@acknowledged_option
@html_option
@markdown_option
def command(history: Path, acknowledged: Path | None, html: Path | None, markdown: Path | None) -> int:
    """What `check` says of the last night, without failing: on stdout where no file is named."""
    from pipebench.report.tracking.reports import night_report
    from pipebench.track.judgement.judgement import require_nights
    from pipebench.track.nights.history import open_history

    options.prepare(html, markdown)
    judgement = options.judged(open_history(history), acknowledged)
    require_nights(judgement)
    report = night_report(judgement)
    options.write(report, html, markdown)
    if html is None and markdown is None:
        options.show(report)
    return 0
