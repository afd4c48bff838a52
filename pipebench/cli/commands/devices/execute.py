"""pipebench execute: a plan on real processes or devices, beside its simulation."""

from pathlib import Path

import click

from pipebench.cli.application import open_host
from pipebench.cli.completion import files, of_slot, one_of
from pipebench.cli.parameters import (
    REAL,
    finite_seconds,
    launch_options,
    trust_in_files,
    trust_option,
    with_launch,
)
from pipebench.cli.terminal import console, print_json, say
from pipebench.defaults import MEASURING_EXECUTOR


@click.command()
@click.argument("plan", shell_complete=files)
@click.option(
    "--executor",
    shell_complete=one_of(of_slot("executors")),
    default=MEASURING_EXECUTOR,
    show_default=True,
    help="An executor, options in brackets.",
)
@click.option("--timeout", type=REAL, default=300.0, callback=finite_seconds, help="Seconds for the run.")
@launch_options
@trust_option
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the measured trace.")
@click.option("--json", "as_json", is_flag=True, help="Figures and both traces as JSON.")
def command(
    plan: str,
    executor: str,
    timeout: float,
    output: Path | None,
    trust: bool,
    as_json: bool,
    **launch: int | str | None,
) -> int:
    """Run the plan of a file (`pipebench plan … -o`) and draw what was simulated above what was measured.

    The options of several machines are the executor's own of the same names. A model that the plan names by import
    path is built with --trust, or where the executor's option names it.
    """
    from dataclasses import asdict

    from pipebench.bench.execution import execute_plan
    from pipebench.formats.documents import read_plan, write_document
    from pipebench.hooks.trust import UntrustedName
    from pipebench.report.text.measurements.runs import execution_lines

    trusting = trust_in_files(trust)
    planned = read_plan(plan, trusting)
    trusted = trusting.models([planned.problem.profile.provenance.captured], plan)
    try:
        done = execute_plan(open_host(), planned, with_launch(executor, launch), timeout, trusted)
    except UntrustedName as error:
        raise UntrustedName(error.code, plan, error.instead) from None
    if output is not None:
        write_document(output, "trace", done.measured)
    if as_json:
        plain = {"simulated": done.simulated, "measured": done.measured}
        rest = {
            "stages": [asdict(stage) for stage in done.stages],
            "all_reduces": [asdict(stage) for stage in done.all_reduces],
            "memory": [asdict(device) for device in done.memory],
            "notices": list(done.notices),
        }
        figures = {
            "simulated_s": done.simulated_s,
            "measured_s": done.measured_s,
            "error": done.error,
            "replayed_s": done.replayed_s,
            "replayed_error": done.replayed_error,
        }
        print_json({**figures, **rest, **plain})
        return 0
    for line in execution_lines(done, console().width):
        say(line)
    return 0
