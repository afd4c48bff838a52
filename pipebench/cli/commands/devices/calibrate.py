"""pipebench calibrate: constants of a device and a framework fitted to a few measured runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import click

from pipebench.cli.application import open_host, show_new_warnings
from pipebench.cli.completion import frameworks, one_of
from pipebench.cli.parameters import OneOf, WholeFrom
from pipebench.cli.terminal import console, print_json, say
from pipebench.documents.units import quantity
from pipebench.domain.errors import ExitCode
from pipebench.domain.limits import MOST_WORKERS


def _devices() -> Mapping[str, str]:
    from pipebench.formats.devices import device_names

    return dict.fromkeys(device_names(), "")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path())
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The calibration file to write (TOML).")
@click.option(
    "--device",
    shell_complete=one_of(_devices),
    help="The device that logs are from; of tables, fit runs on this one only.",
)
@click.option("--framework", shell_complete=one_of(frameworks), help="Fit runs under this framework only.")
@click.option(
    "--trace",
    "traces",
    multiple=True,
    metavar="RUN=FILE",
    help="A trace of one rank of a run, by its id: its steps are the time, its kernels are fitted too.",
)
@click.option(
    "--most",
    type=WholeFrom(1),
    default=50,
    show_default=True,
    help="Runs to fit; of more a sample is drawn, always the same.",
)
@click.option(
    "--leave-out",
    type=OneOf(["runs", "shapes", "both"]),
    default="both",
    show_default=True,
    help="What is left out of fits in turn, to see how good they are for runs that they did not see.",
)
@click.option(
    "--afresh",
    is_flag=True,
    help="Fit as if the usual constants were not there: from the middle of the ranges, with no pull.",
)
@click.option("--force", is_flag=True, help="Write the file even if runs that a fit did not see got no better.")
@click.option("--jobs", type=WholeFrom(1), default=1, show_default=True, help="Processes side by side.")
@click.option("--json", "as_json", is_flag=True, help="Constants, errors and runs as JSON on stdout.")
def command(
    runs: tuple[str, ...],
    output: Path | None,
    device: str | None,
    framework: str | None,
    traces: tuple[str, ...],
    most: int,
    leave_out: str,
    afresh: bool,
    force: bool,
    jobs: int,
    as_json: bool,
) -> int:
    """Fit a few constants of a device and a framework to runs that you measured.

    RUNS are tables as `accuracy` takes them (docs/reference/runs.md), and logs of Megatron-LM or torchtitan, each
    of which is one run. Each run is simulated; constants move inside fixed ranges, and only
    those that the runs can tell. How good the constants are is measured on runs that were left out of the fit.
    A file written with -o goes to `--calibration` of other commands.
    """
    from pipebench.bench.calibration.outcome import LeaveOut, calibrate, calibration_file
    from pipebench.bench.calibration.sources import measured_runs, with_traces
    from pipebench.bench.calibration.subject import subject_of
    from pipebench.bench.searches.isolation.client import isolation
    from pipebench.cli.progress import long_work
    from pipebench.formats.files import prepare_file, write_file
    from pipebench.report.text.measurements.calibration import print_outcome

    listed, traced = with_traces(measured_runs(runs, device), traces)
    if output is not None:
        prepare_file(output)
    host = open_host()
    workers = min(jobs, MOST_WORKERS)
    if jobs == 1:
        isolation().warm_up()
    with long_work(f"predicting {quantity(len(listed), 'run')} …") as working:
        subject = subject_of(host, listed, device, framework, workers, traced, most)
        working(f"fitting constants to {quantity(len(subject.runs), 'run')} …")
        made = calibrate(
            host,
            subject,
            workers,
            lambda done: working(f"fitting: {done} fits done …"),
            leave_out=cast(LeaveOut, leave_out),
            afresh=afresh,
        )
    show_new_warnings(host)
    if as_json:
        print_json(made)
    else:
        print_outcome(console(), made)
    if output is None:
        return ExitCode.OK
    if not made.better and not force:
        say(f"{output} not written: give --force to write it all the same", err=True)
        return ExitCode.CONDITION_FAILED
    write_file(output, calibration_file(made, ", ".join(runs)).encode())
    say(f"{output} written ({quantity(len(made.tuning.constants), 'constant')})", err=True)
    return ExitCode.OK
