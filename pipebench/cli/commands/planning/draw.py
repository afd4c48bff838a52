"""pipebench draw: timelines of schedules."""

import os
from pathlib import Path
from typing import Any

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import of_slot, some_of
from pipebench.cli.groups import invocation
from pipebench.cli.parameters import REAL, WholeFrom
from pipebench.cli.terminal import console, print_json, say
from pipebench.domain.schedule import WEIGHT_GRADIENT

SMALL = 800
"""Stages times their parts times micro-batches up to which Python is done before a compiler has begun."""


@click.command()
@click.argument("schedulers", shell_complete=some_of(of_slot("schedulers")))
@click.option("--stages", default=4, show_default=True, type=WholeFrom(1), help="Number of stages.")
@click.option("--micro-batches", default=8, show_default=True, type=WholeFrom(1), help="Micro-batches.")
@click.option("--forward", default=1.0, show_default=True, type=REAL, help="Time of a forward.")
@click.option("--backward", default=2.0, show_default=True, type=REAL, help="Time of a backward.")
@click.option("--transfer", default=0.0, show_default=True, type=REAL, help="Time of a transfer between stages.")
@click.option("--weight", default=0.0, show_default=True, type=REAL, help="Weight gradient's part of a backward.")
@click.option(
    "--vpp",
    default=2,
    show_default=True,
    type=WholeFrom(1),
    help="Parts of a stage, where devices run several in turn.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A picture (.svg) or Chrome trace (.json).")
@click.option("--json", "as_json", is_flag=True, help="Figures and traces as JSON.")
def command(
    schedulers: str,
    stages: int,
    micro_batches: int,
    forward: float,
    backward: float,
    transfer: float,
    weight: float,
    vpp: int,
    output: Path | None,
    as_json: bool,
) -> int:
    """Draw SCHEDULERS (by commas) on equal stages: timeline, bubble, micro-batches in flight."""
    from pipebench.hooks.syntax import split_list
    from pipebench.report.gantt.text import legend, timeline
    from pipebench.report.pictures import write_gantts

    if invocation().alone and stages * vpp * micro_batches <= SMALL:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    from pipebench.report.drawing import Shape, drawings

    host = open_host()
    shape = Shape(stages, micro_batches, forward, backward, transfer, weight, vpp)
    made, refused = drawings(host, split_list(schedulers), shape)
    show_new_warnings(host)
    for each in refused:
        say(each, err=True)
    if output is not None:
        title = f"{stages} stages, {micro_batches} micro-batches"
        write_gantts(output, [drawing.gantt for drawing in made], title)
        say(f"{output} written", err=True)
    if as_json:
        print_json([_plain(drawing) for drawing in made])
        return 0
    out = console()
    for drawing in made:
        say(drawing.summary)
        if drawing.trace.period_ns is not None:
            say(f"the first {drawing.shown} micro-batches of a run without end, later ones among them")
        for line in timeline(drawing.gantt, out.width):
            say(line)
    for line in dict.fromkeys(legend(drawing.gantt) for drawing in made):
        say(line)
    if weight == 0 and any(WEIGHT_GRADIENT in drawing.trace.kinds for drawing in made):
        say(
            "weight gradients take no time here, so that moving them wins nothing: say --weight, such as 1",
            err=True,
        )
    return 0


def _plain(drawing: Any) -> dict[str, Any]:
    return {name: getattr(drawing, name) for name in drawing.__slots__}
