"""pipebench plugin new: a package to start from."""

from pathlib import Path

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.terminal import say


@click.command()
@click.argument("name")
@click.option(
    "--slot",
    default="planner",
    show_default=True,
    help="planner, scheduler, executor, profiler, model, format or artefact.",
)
@click.option(
    "--into", type=click.Path(path_type=Path), default=Path(), help="The folder to put it in  [default: here]"
)
def command(name: str, slot: str, into: Path) -> int:
    """Write a complete package with a plugin that works: code, tests, README, a workflow for CI.

    NAME: of the folder, the component (of an artefact NAME/fig1) and the distribution (pipebench-NAME). Nothing is
    overwritten.
    """
    from pipebench.testing.scaffold import SLOTS, new_package, write_package

    host = open_host()
    taken = host.slot(f"{slot}s") if slot in SLOTS else ()
    show_new_warnings(host)
    package = new_package(name, slot, into, taken)
    for path in write_package(package):
        say(str(package.folder / path))
    say(f"next: pip install -e '{package.folder}[test]', then python -m pytest {package.folder}", err=True)
    return 0
