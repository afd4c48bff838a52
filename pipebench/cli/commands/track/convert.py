"""pipebench track convert: nights of an earlier pipebench, once."""

from pathlib import Path

import click

from pipebench.cli.commands.track.options import history_option
from pipebench.cli.terminal import say
from pipebench.documents.units import quantity


@click.command()
@history_option
def command(history: Path) -> int:
    """Make a history of the nights that an earlier pipebench kept, in a file for each class of machine.

    The folder holds the same nights and plans after that, and gives the same report. The earlier files are
    removed once all of it is on the disk; what was acknowledged stays.
    """
    from pipebench.track.nights.conversion import convert

    say(f"{history}: {quantity(convert(history), 'night')} converted", err=True)
    return 0
