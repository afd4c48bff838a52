"""Options and rules of option values that several commands share."""

import os
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import click

from pipebench.cli.option_groups import HOW, option
from pipebench.domain.errors import PipebenchError, nearest
from pipebench.domain.limits import LONGEST_WAIT_S
from pipebench.domain.value import short

if TYPE_CHECKING:
    from pipebench.bench.sweeps.sweep import Where
    from pipebench.hooks.trust import Trust

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # click 8.1 takes no type argument


class _Digits:
    """A number in the digits 0 to 9, as in every file: Python also takes `1_0`, and digits of other scripts.

    least, most: its limits, None where it has none.
    """

    kind: type[int] | type[float] = int
    least: float | None = None
    most: float | None = None

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str):
            if "_" in value or not value.isascii():
                raise click.BadParameter(f"{value!r} is not a number in the digits 0 to 9.", ctx, param)
            try:
                self.kind(value)
            except ValueError:
                raise click.BadParameter(f"{value!r} is not a {self._wanted()}", ctx, param) from None
        made = super().convert(value, param, ctx)  # type: ignore[misc]
        if self.least is not None and self.most is not None and not self.least <= made <= self.most:
            raise click.BadParameter(f"{short(made)} is not from {self.least} to {self.most}.", ctx, param)
        return made

    def _wanted(self) -> str:
        whole = self.kind is int
        if self.least is None or self.most is None:
            return "whole number such as 4096" if whole else "number such as 0.5"
        return f"{'whole ' if whole else ''}number from {self.least} to {self.most}: write it in digits"


class Whole(_Digits, click.types.IntParamType):
    """A whole number, from least to most where it has limits."""

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        self.least, self.most = least, most


class Real(_Digits, click.types.FloatParamType):
    """A number, from least to most where it has limits: NaN is beyond them."""

    kind = float

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        self.least, self.most = least, most


class OneOf(_Choice):
    """One of some words; for another one the nearest is offered."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        words = list(map(str, self.choices))
        if value not in words:
            hint = nearest(str(value), words)
            raise click.BadParameter(f"{value!r} is not one of its values ({hint})", ctx, param)
        return super().convert(value, param, ctx)


class WholeFrom(_Digits, click.IntRange):
    """A whole number from `min`, up to `max` where there is one."""


WHOLE, REAL = Whole(), Real()
"""Numbers of any size."""
NUMBERS: dict[type, type[Whole] | type[Real]] = {int: Whole, float: Real}


MOST_SHARE = 1.0
"""Of what is asked for as a share, such as 0.02: who says 2 means 2 %."""


def finite_seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """A finite time above zero. Raises click's usage error for other values, NaN included."""
    if value is not None and not 0 < value <= LONGEST_WAIT_S:
        raise click.BadParameter(
            f"{value:g} is not a number of seconds above 0, up to {LONGEST_WAIT_S:g}", ctx, param
        )
    return value


def share_or_none(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """A share of at least 0, or none. Raises click's usage error for other values, NaN included."""
    if value is not None and not 0 <= value <= MOST_SHARE:
        raise click.BadParameter(f"{value:g} is not from 0 to {MOST_SHARE:g}: 0.02 is 2 %", ctx, param)
    return value


def memory_bytes(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A size such as 4GB or 512MiB, above zero. Raises click's usage error for others."""
    from pipebench.formats.quantities import parse_bytes

    if value is None:
        return None
    try:
        amount = parse_bytes(value)
    except PipebenchError as error:
        raise click.BadParameter(str(error), ctx, param) from None
    if amount <= 0:
        raise click.BadParameter(f"{value} is not above 0", ctx, param)
    return amount


def one_backend(jobs: int | None, backend: str | None, scheduler_address: str | None) -> "Where":
    """Where trials run. Raises PipebenchError for options that do not go together."""
    from pipebench.bench.sweeps.sweep import Where

    if backend == "loky" and scheduler_address is not None:
        raise PipebenchError("--scheduler-address is for --backend dask", "leave one of them out")
    if backend == "dask" or scheduler_address is not None:
        if scheduler_address is None:
            raise PipebenchError("--backend dask needs a cluster", "give --scheduler-address tcp://host:8786")
        if jobs is not None:
            raise PipebenchError("--jobs is for this machine, not for a Dask cluster", "leave one of them out")
        return Where(dask_address=scheduler_address)
    if backend == "loky" and jobs is None:
        return Where(jobs=os.cpu_count() or 1)
    return Where(jobs=jobs or 1)


NO_WAIT = "Run beside other runs of pipebench at once; rows say so."
no_wait_option = option(HOW, "--no-wait", is_flag=True, help=NO_WAIT)


def patience_s(no_wait: bool) -> float:
    """How long a trial waits until the machine is free."""
    from pipebench.bench.sweeps.sweep import PATIENCE_S

    return 0.0 if no_wait else PATIENCE_S


trust_option = option(
    HOW, "--trust", is_flag=True, help="Run what files name besides installed components; it is printed first."
)


def trust_in_files(given: bool) -> "Trust":
    """What the user says of names in files; each thing that runs is printed to stderr before."""
    from pipebench.cli.terminal import say
    from pipebench.hooks.trust import Trust

    return Trust(given, lambda line: say(" ".join(line.split()), err=True))


with_output_option = click.option(
    "--with-output", is_flag=True, help="With absolute paths, whole command lines and printed output; lists them."
)


def tell_passed_on(found: Collection[str], target: object, with_output: bool) -> None:
    """Before a file is written that is passed on: each thing that goes into it, or how much is left out."""
    from pipebench.cli.terminal import say

    if with_output:
        for line in found:
            say(f"{target} has {' '.join(line.split())}", err=True)
    elif found:
        said = "1 thing stays" if len(found) == 1 else f"{len(found)} things stay"
        say(f"{said} here (paths, command lines, printed output): --with-output lists and adds them", err=True)


LAUNCH = (
    click.option("--nnodes", type=WHOLE, help="Machines that run it together; type the same command on each."),
    click.option("--node-rank", type=WHOLE, help="Which of them this one is, from 0."),
    click.option("--processes-per-node", type=WHOLE, help="Processes of each machine, when not dealt evenly."),
    click.option("--rendezvous", metavar="HOST:PORT", help="Where they meet: node 0 and a free port of it."),
)
"""Options of several machines: a component's own of the same names."""


def launch_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of LAUNCH, which it takes as `**launch`."""
    for add in reversed(LAUNCH):
        command = add(command)
    return command


def with_launch(component: str, launch: dict[str, int | str | None]) -> str:
    """A component, options in brackets, with those of LAUNCH that were given."""
    from pipebench.hooks.syntax import parse_reference, with_options

    said = {name: str(value) for name, value in launch.items() if value is not None}
    return str(with_options(parse_reference(component), said))
