"""pipebench draw: timelines of schedules."""

from typing import Any

import click

from pipebench.cli.application import console, open_host, print_json, show_new_warnings


@click.command()
@click.argument("schedulers")
@click.option("--stages", default=4, show_default=True, type=click.IntRange(1), help="Number of stages.")
@click.option("--micro-batches", default=8, show_default=True, type=click.IntRange(1), help="Micro-batches.")
@click.option("--forward", default=1.0, show_default=True, help="Time of a forward.")
@click.option("--backward", default=2.0, show_default=True, help="Time of a backward.")
@click.option("--transfer", default=0.0, show_default=True, help="Time of a transfer between stages.")
@click.option("--json", "as_json", is_flag=True, help="Figures and traces as JSON.")
def command(
    schedulers: str,
    stages: int,
    micro_batches: int,
    forward: float,
    backward: float,
    transfer: float,
    as_json: bool,
) -> int:
    """Draw SCHEDULERS (by commas) on equal stages: timeline, bubble, micro-batches in flight."""
    from pipebench.hooks.syntax import split_list
    from pipebench.report.drawing import Shape, drawings
    from pipebench.report.timeline import legend, timeline
    from pipebench.report.units import percent

    host = open_host()
    shape = Shape(stages, micro_batches, forward, backward, transfer)
    made = drawings(host, split_list(schedulers), shape)
    show_new_warnings(host)
    if as_json:
        print_json([_plain(drawing) for drawing in made])
        return 0
    out = console()
    for drawing in made:
        periodic = drawing.trace.period_ns is not None
        per = " a micro-batch" if periodic else ""
        flight = ",".join(map(str, drawing.live))
        click.echo(
            f"{drawing.scheduler}: time {drawing.total:g}{per}, bubble {percent(drawing.bubble)}, "
            f"micro-batches in flight {flight}"
        )
        if periodic:
            click.echo(f"the first {drawing.shown} micro-batches of a run without end, later ones among them")
        for line in timeline(drawing.trace, out.width, drawing.until_ns):
            click.echo(line)
    for line in dict.fromkeys(legend(drawing.trace) for drawing in made):
        click.echo(line)
    return 0


def _plain(drawing: Any) -> dict[str, Any]:
    return {name: getattr(drawing, name) for name in drawing.__slots__}
