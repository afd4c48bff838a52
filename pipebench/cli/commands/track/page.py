"""pipebench track page: the whole history as one file for a browser."""

from pathlib import Path

import click

from pipebench.cli.commands.track.options import acknowledged_option, history_option, judged
from pipebench.cli.terminal import say


@click.command()
@history_option
@acknowledged_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file  [default: index.html in the history]",
)
def command(history: Path, acknowledged: Path | None, output: Path | None) -> int:
    """Every series as a small curve, night after night, changes marked with their commits.

    One file, dark and light, that loads nothing from elsewhere.
    """
    from pipebench.formats.files import prepare_file, write_file
    from pipebench.report.html.nights_page import nights_page
    from pipebench.track.judgement.judgement import require_nights
    from pipebench.track.nights.history import open_history

    target = output if output is not None else history / "index.html"
    opened = open_history(history)
    judgement = judged(opened, acknowledged)
    require_nights(judgement)
    prepare_file(target)
    write_file(target, nights_page(opened, judgement, "Nights").encode())
    say(f"{target} written", err=True)
    return 0
