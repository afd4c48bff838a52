"""Options that describe a workload, shared by compare and plan, and the workloads that they give."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipebench.defaults import CLUSTER, SUITE
from pipebench.domain.errors import UnsupportedProblem

if TYPE_CHECKING:
    from pipebench.bench.problems.workload import Workload
    from pipebench.bench.suites.selection import Selection
    from pipebench.hooks.manager import Host

F = TypeVar("F", bound=Callable[..., Any])

UNPRICED = {"cp": "context parallelism", "ep": "expert parallelism"}
"""Degrees that may be named, and must be 1."""

_OPTIONS = [
    click.option("--models", "-m", multiple=True, help="Models, name[option=value], profiled analytically."),
    click.option("--profile", "-p", "profiles", multiple=True, help="Profiles: shipped names or files."),
    click.option("--config", "configs", multiple=True, help="A language model's Hugging Face config.json."),
    click.option("--seq", "sequence", type=click.IntRange(1), help="With --config: tokens a sample."),
    click.option(
        "--suite", "suites", multiple=True, help=f"Suites, by name or TOML file (nothing named: {SUITE})."
    ),
    click.option("--cluster", help=f"A cluster, by name or TOML file (default: {CLUSTER}, or the suite's)."),
    click.option(
        "--devices", "-n", type=int, help="Number of devices (default: 8, or the suite's or cluster file's)."
    ),
    click.option("--memory", help="Memory of each device, such as 12GB or 16GiB."),
    click.option("--bandwidth", help="One-way link bandwidth of each device, such as 12GB/s."),
    click.option("--link-mode", type=click.Choice(["full", "half", "delay"]), help="How links are shared."),
    click.option("--mini-batch", type=int, help="Samples for one weight update."),
    click.option("--micro-batch", type=int, help="Pin the micro-batch: samples through a stage, all replicas."),
    click.option("--tp", type=int, help="Pin the tensor-parallel degree."),
    click.option("--dp", type=int, help="Pin the data-parallel degree."),
    click.option("--pp", type=int, help="Pin the number of pipeline stages."),
    click.option("--vpp", type=int, help="Pin the number of stages on each device (virtual stages)."),
    click.option("--recompute", type=click.Choice(["none", "stage"]), help="Pin recomputation."),
    click.option("--cp", type=click.IntRange(1), help="Context parallelism: only 1, it is not priced."),
    click.option("--ep", type=click.IntRange(1), help="Expert parallelism: only 1, it is not priced."),
    click.option("--precision", type=click.Choice(["fp32", "fp16", "bf16"]), help="Of a model's weights."),
    click.option("--gradient-precision", type=click.Choice(["fp32", "fp16", "bf16"]), help="Of gradients."),
    click.option("--reserve", type=float, help="Share of device memory to keep free, such as 0.1."),
    click.option(
        "--optimizer", type=click.Choice(["adam", "sgd", "none"]), help="Optimizer state held beside the weights."
    ),
    click.option(
        "--optimizer-sharding",
        type=click.Choice(["none", "zero1"]),
        help="Share the optimizer state out over replicas.",
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
    from pipebench.bench.suites.selection import select

    workloads = select(host, selection(choice))
    for notice in dict.fromkeys(notice for workload in workloads for notice in workload.notices):
        click.echo(f"note: {notice}", err=True)
    return workloads


def selection(choice: dict[str, Any]) -> "Selection":
    """What the options select. Raises UnsupportedProblem for degrees above 1 that nothing prices."""
    from pipebench.bench.suites.selection import Selection

    for name, what in UNPRICED.items():
        degree = choice.get(name) or 1
        if degree > 1:
            raise UnsupportedProblem(
                f"{what} (--{name} {degree}) is not priced", f"plan without it: --{name} 1, or leave it out"
            )
    return Selection(**{name: value for name, value in choice.items() if name not in UNPRICED})
