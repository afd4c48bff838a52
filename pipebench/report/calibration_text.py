"""Fitted rates as a table: what each operator kind reaches, and how far the fit is from what was measured."""

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.domain.calibration import Calibration, Errors, FittedRates
from pipebench.report.units import seconds

ENDLESS = 1e15
"""Rates from here on were not seen to bind anything."""


def print_calibration(console: Console, calibration: Calibration) -> None:
    """One line for each kind and direction, then the errors of sums over whole models."""
    files = ", ".join(calibration.profiles)
    console.print(Text(f"rates fitted to {files} on {calibration.device_type}", style="bold"), soft_wrap=True)
    left = calibration.left_out
    made = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("kind", ""):
        made.add_column(title)
    for title in ("GFLOP/s", "half at", "GB/s", "launch", "times", "error", *(("held out",) if left else ())):
        made.add_column(title, justify="right", no_wrap=True)
    for fit in calibration.fits:
        made.add_row(*_cells(fit, bool(left)))
    console.print(made)
    legend = "half at: rows at which half of the FLOP/s are reached; errors: median/90th percentile"
    console.print(Text(legend), soft_wrap=True)
    console.print(Text(f"whole models: {_range(calibration.sums)} off what was measured"), soft_wrap=True)
    if left:
        said = f"held out: predicted without the {left} they belong to; whole models: "
        console.print(Text(f"{said}{_range(calibration.held_out_sums)} off"), soft_wrap=True)


def _cells(fit: FittedRates, held_out: bool) -> list[str]:
    kind = fit.kind or ("contractions" if fit.contraction else "others")
    rows = f"{fit.r_half:.3g}" if fit.contraction else "-"
    figures = [_giga(fit.flops_per_s), rows, _giga(fit.bytes_per_s), seconds(fit.launch_s), str(fit.points)]
    held = [_errors(fit.held_out)] if held_out else []
    return [kind, fit.direction[0].upper(), *figures, _errors(fit.errors), *held]


def _giga(rate: float | None) -> str:
    return "-" if rate is None or rate >= ENDLESS else f"{rate / 1e9:.3g}"


def _errors(errors: Errors | None) -> str:
    return "-" if errors is None else f"{100 * errors.median:.0f}/{100 * errors.p90:.0f} %"


def _range(sums: Mapping[str, float]) -> str:
    least, most = min(sums.values(), default=0.0), max(sums.values(), default=0.0)
    return f"{100 * least:+.1f} %" if len(sums) == 1 else f"{100 * least:+.1f} to {100 * most:+.1f} %"
