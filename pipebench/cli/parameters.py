"""Rules of option values that click has no type for."""

import os
from typing import TYPE_CHECKING

import click

from pipebench.domain.errors import PipebenchError

if TYPE_CHECKING:
    from pipebench.bench.sweeps.sweep import Where

LONGEST_S = 1e8
"""Three years: what the system's timers all take."""


def finite_seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """A time above zero that ends. Raises click's usage error for others, NaN included."""
    if value is not None and not 0 < value <= LONGEST_S:
        raise click.BadParameter(f"{value:g} is not a number of seconds above 0, up to {LONGEST_S:g}", ctx, param)
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
