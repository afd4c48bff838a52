"""pipebench export: a plan in the words of a training framework."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipebench.cli.application import open_host
from pipebench.cli.completion import files
from pipebench.cli.parameters import OneOf
from pipebench.cli.terminal import print_json, say
from pipebench.defaults import LAYOUT_PLANNER
from pipebench.domain.errors import ExitCode, PipebenchError

if TYPE_CHECKING:
    from pipebench.documents.document import PlannedProblem
    from pipebench.hooks.manager import Host


ALLOW_IDLE = "Export a plan that does not use all devices too."
FORMATS = ["megatron", "torchtitan", "pipelining", "deepspeed", "pipedream"]


@click.command()
@click.argument("plan", shell_complete=files)
@click.option("--to", "name", required=True, type=OneOf(FORMATS), help="The framework.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the block to a file.")
@click.option(
    "--schedule", "csv", type=click.Path(path_type=Path), help="torchtitan: where the schedule's CSV goes."
)
@click.option(
    "--nearest", "kept", type=click.Path(path_type=Path), help="Where refused: write the nearest plan here."
)
@click.option("--allow-idle", is_flag=True, help=ALLOW_IDLE)
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON on stdout.")
def command(
    plan: str,
    name: str,
    output: Path | None,
    csv: Path | None,
    kept: Path | None,
    allow_idle: bool,
    as_json: bool,
) -> int:
    """Write the plan in file PLAN for a framework, with what it is worth and how sure that is."""
    from pipebench.formats.documents import read_plan

    return show_export(
        open_host(), read_plan(plan), name, output, csv, kept, as_json=as_json, allow_idle=allow_idle
    )


def show_export(
    host: "Host",
    planned: "PlannedProblem",
    name: str,
    output: Path | None = None,
    csv: Path | None = None,
    kept: Path | None = None,
    *,
    as_json: bool = False,
    allow_idle: bool = False,
    keep_order: bool = False,
) -> int:
    """Print or write the export; a plan that the framework cannot express is exit code 1, with the nearest.

    So is a plan that leaves devices idle, unless allow_idle.
    """
    from pipebench.bench.exports.export import Refusal, export, require_all_devices
    from pipebench.cli.progress import long_work
    from pipebench.documents.document import PlannedProblem
    from pipebench.formats.documents import write_document
    from pipebench.formats.files import write_file
    from pipebench.formats.frameworks.targets import target_named
    from pipebench.report.text.exports import as_plain, export_lines, refusal_hint, refusal_lines

    file = csv or (output.with_suffix(".csv") if output is not None else Path("schedule.csv"))
    with long_work("predicting the exported plan, and other cuts beside it …"):
        made = export(host, planned, target_named(name), str(file), keep_order)
    if isinstance(made, Refusal):
        if kept is not None and made.nearest is not None:
            found = made.nearest
            nearest = PlannedProblem(
                problem=found.problem,
                plan=found.plan,
                schedule=found.prediction.schedule,
                scheduler=found.prediction.scheduler,
                planner=LAYOUT_PLANNER,
            )
            write_document(kept, "plan", nearest)
        first, *rest = refusal_lines(made)
        for line in rest:
            say(line, err=True)
        raise PipebenchError(first, refusal_hint(made, kept), ExitCode.CONDITION_FAILED)
    if not allow_idle:
        require_all_devices(planned)
    if made.schedule is not None and (csv is not None or output is not None):
        write_file(file, made.schedule)
    if as_json:
        print_json(as_plain(made))
        return ExitCode.OK
    comment = made.target.comment
    for line in export_lines(made):
        say(f"{comment} {line}" if comment else line, err=not comment and output is None)
    if output is not None:
        write_file(output, made.text.encode())
    else:
        say(made.text, nl=False)
        if made.schedule is not None and csv is None:
            say(f"# {file}:")
            say(made.schedule.decode(), nl=False)
    return ExitCode.OK
