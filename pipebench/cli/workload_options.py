"""Options that describe a workload, shared by compare and plan, and the workloads that they give."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from pipebench.bench.problems.workload import Workload
    from pipebench.hooks.manager import Host

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = [
    click.option("--models", "-m", multiple=True, help="Models, name[option=value], profiled analytically."),
    click.option("--profile", "-p", "profiles", multiple=True, help="Profiles: shipped names or files."),
    click.option("--suite", "suites", multiple=True, help="Suites, by name or TOML file (nothing named: quick)."),
    click.option("--cluster", help="A cluster, by name or TOML file (default: flat, or the suite's)."),
    click.option("--devices", "-n", type=int, help="Number of devices (default: 8, or the suite's)."),
    click.option("--memory", help="Memory of each device, such as 12GB or 16GiB."),
    click.option("--bandwidth", help="One-way link bandwidth of each device, such as 12GB/s."),
    click.option("--link-mode", type=click.Choice(["full", "half", "delay"]), help="How links are shared."),
    click.option("--mini-batch", type=int, help="Samples for one weight update."),
    click.option("--micro-batch", type=int, help="Pin the micro-batch size."),
    click.option("--tp", type=int, help="Pin the tensor-parallel degree."),
    click.option("--dp", type=int, help="Pin the data-parallel degree."),
    click.option("--pp", type=int, help="Pin the number of pipeline stages."),
    click.option("--reserve", type=float, help="Share of device memory to keep free, such as 0.1."),
    click.option(
        "--optimizer", type=click.Choice(["adam", "sgd", "none"]), help="Optimizer state held beside the weights."
    ),
]


def workload_options(function: F) -> F:
    """Add all workload options to a command; they arrive as the fields of bench.selection.Selection."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def chosen_workloads(host: "Host", choice: dict[str, Any]) -> "list[Workload]":
    """The workloads of the options above; what was assumed in reading their files goes to stderr.

    Raises PipebenchError for names, files and numbers that are wrong.
    """
    from pipebench.bench.suites.selection import Selection, select

    workloads = select(host, Selection(**choice))
    for notice in dict.fromkeys(notice for workload in workloads for notice in workload.notices):
        click.echo(f"note: {notice}", err=True)
    return workloads
