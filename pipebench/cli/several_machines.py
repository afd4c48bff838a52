"""Options of commands that run on several machines at once."""

from collections.abc import Callable

import click

LAUNCH = (
    click.option("--nnodes", type=int, help="Machines that run it together; type the same command on each."),
    click.option("--node-rank", type=int, help="Which of them this one is, from 0."),
    click.option("--processes-per-node", type=int, help="Processes of each machine, when not dealt evenly."),
    click.option("--rendezvous", metavar="HOST:PORT", help="Where they meet: node 0 and a free port of it."),
)
"""Options of several machines: a component's own of the same names."""


def launch_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of LAUNCH, which it takes as `**launch`."""
    for option in reversed(LAUNCH):
        command = option(command)
    return command


def with_launch(component: str, launch: dict[str, int | str | None]) -> str:
    """A component, options in brackets, with those of LAUNCH that were given."""
    from pipebench.hooks.syntax import parse_reference, with_options

    said = {name: str(value) for name, value in launch.items() if value is not None}
    return str(with_options(parse_reference(component), said))
