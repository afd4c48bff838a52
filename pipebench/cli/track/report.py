"""pipebench track report: the history as people read it."""

from datetime import UTC, datetime
from pathlib import Path

import click

from pipebench.cli.track import output
from pipebench.cli.track.options import (
    acknowledged_file,
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
    from pipebench.report.tracking.night import night_report
    from pipebench.track.acknowledged import read_acknowledged
    from pipebench.track.history import open_history
    from pipebench.track.judgement import judge, require_nights

    output.prepare(html, markdown)
    known = read_acknowledged(acknowledged_file(history, acknowledged))
    judgement = judge(open_history(history), known, datetime.now(UTC))
    require_nights(judgement)
    report = night_report(judgement)
    output.write(report, html, markdown)
    if html is None and markdown is None:
        output.show(report)
    return 0
