"""pipebench pack: a store as one file to pass on."""

import click

from pipebench.cli.completion import files
from pipebench.cli.parameters import tell_passed_on, with_output_option
from pipebench.cli.terminal import say
from pipebench.documents.units import quantity
from pipebench.domain.errors import ExitCode


@click.command()
@click.argument("store", shell_complete=files)
@click.option("-o", "--out", shell_complete=files, required=True, help="The zip to write, such as results.zip.")
@with_output_option
def command(store: str, out: str, with_output: bool) -> int:
    """Write the rows of STORE, and the problems, plans and schedules behind them, into one zip.

    The same store gives the same bytes. Planners that were files go with it as text. Absolute paths, command lines
    beyond the program's name and what planners printed stay here, so that rows with such planners cannot be run
    again from the zip.
    """
    from pipebench.bench.store.pack import pack

    packed = pack(store, out, with_output, lambda lines: tell_passed_on(lines, out, with_output))
    for notice in packed.notices:
        say(f"warning: {notice}", err=True)
    say(
        f"{out}: {quantity(packed.rows, 'row')}, {quantity(packed.objects, 'object')}, {packed.bytes / 1e6:.3g} MB"
    )
    return ExitCode.OK
