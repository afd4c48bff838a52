"""Options that describe a workload, shared by compare and plan, and the workloads that they give."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pipebench.domain.errors import PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.workload import Workload
    from pipebench.hooks.manager import Host

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = [
    click.option("--models", "-m", multiple=True, help="Models, name[option=value], profiled analytically."),
    click.option("--profile", "-p", "profiles", multiple=True, help="Profiles: shipped names or files."),
    click.option("--suite", help="A suite, by name or TOML file (without models or profiles: quick)."),
    click.option("--cluster", help="A cluster, by name or TOML file (default: flat)."),
    click.option("--devices", "-n", type=int, help="Number of devices (default: 8)."),
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
    """Add all workload options to a command; they arrive as keyword arguments of WorkloadChoice."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadChoice:
    """The workload options as the user gave them."""

    models: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()
    suite: str | None = None
    cluster: str | None = None
    devices: int | None = None
    memory: str | None = None
    bandwidth: str | None = None
    link_mode: str | None = None
    mini_batch: int | None = None
    micro_batch: int | None = None
    tp: int | None = None
    dp: int | None = None
    pp: int | None = None
    reserve: float | None = None
    optimizer: str | None = None

    def workloads(self, host: "Host") -> "list[Workload]":
        """The workloads chosen. Raises PipebenchError for names, files and numbers that are wrong."""
        from pipebench.bench.selection import Selection, select

        values = {name: getattr(self, name) for name in self.__slots__}
        found = select(host, Selection(**values))
        if not found:
            raise PipebenchError("no workload was selected", "give --models, --profile or --suite")
        return found
