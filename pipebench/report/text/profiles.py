"""A profile as people read it: totals, expensive operators, fitted rates, links of the cluster."""

from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipebench.documents.units import readable_bytes, readable_seconds
from pipebench.domain.calibration import Calibration, Errors, FittedRates
from pipebench.domain.cluster import Cluster
from pipebench.domain.profile import DeviceCosts, Profile
from pipebench.report.text.tables import print_line, print_table
from pipebench.report.units import gigabytes, seconds

SHOWN = 10


def print_profile(console: Console, profile: Profile) -> None:
    """Where it comes from, its totals on each device type, and the ten most expensive operators."""
    graph, origin = profile.graph, profile.provenance
    parameters = sum(graph.parameter_bytes.values())
    console.print(
        Text(
            f"profile {profile.name}: {len(graph.operators)} operators, {len(graph.tensors)} tensors, "
            f"{gigabytes(parameters)} of {profile.precision} parameters"
        ),
        soft_wrap=True,
    )
    for label, value in (
        ("by", origin.profiler),
        ("from", origin.made_by),
        ("on", origin.device),
        ("saved", origin.saved),
        *(("note", line) for line in origin.lines),
    ):
        if value:
            print_line(console, f"{label}: {value}")
    for costs in profile.costs:
        console.print(Text(f"whole model on {costs.device_type}", style="bold"))
        print_table(console, _totals(costs))
        largest = costs.micro_batches[-1]
        console.print(Text(f"most expensive operators at micro-batch {largest}", style="bold"), soft_wrap=True)
        print_table(console, _dearest(costs))
    if origin.calibration:
        print_calibration(console, origin.calibration)


def _totals(costs: DeviceCosts) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("micro-batch", "forward", "backward", "saved"):
        made.add_column(title, justify="right")
    for position, size in enumerate(costs.micro_batches):
        made.add_row(
            str(size),
            seconds(sum(c.forward_s[position] for c in costs.operators)),
            seconds(sum(c.backward_s[position] for c in costs.operators)),
            gigabytes(round(sum(c.saved_bytes_per_sample for c in costs.operators) * size)),
        )
    return made


def _dearest(costs: DeviceCosts) -> Table:
    largest = costs.micro_batches[-1]
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column("operator", overflow="fold")
    for title in ("forward", "backward", "saved"):
        made.add_column(title, justify="right")
    ranked = sorted(costs.operators, key=lambda c: -(c.forward_s[-1] + c.backward_s[-1]))
    for operator in ranked[:SHOWN]:
        made.add_row(
            operator.operator,
            seconds(operator.forward_s[-1]),
            seconds(operator.backward_s[-1]),
            gigabytes(round(operator.saved_bytes_per_sample * largest)),
        )
    return made


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
        made.add_row(*_rate_cells(fit, bool(left)))
    print_table(console, made)
    legend = "half at: rows at which half of the FLOP/s are reached; errors: median/90th percentile"
    console.print(Text(legend), soft_wrap=True)
    console.print(Text(f"whole models: {_range(calibration.sums)} off what was measured"), soft_wrap=True)
    if left:
        said = f"held out: predicted without the {left} they belong to; whole models: "
        console.print(Text(f"{said}{_range(calibration.held_out_sums)} off"), soft_wrap=True)


def _rate_cells(fit: FittedRates, held_out: bool) -> list[str]:
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


def cluster_lines(cluster: Cluster) -> Iterator[str]:
    """Latency and bandwidth of every level; which devices it joins, where there are several."""
    for level in cluster.rank_levels:
        several = len(cluster.rank_levels) > 1
        reach = f", {level.name}: {level.group} of {cluster.accelerators} devices" if several else ""
        rate = f"bandwidth {readable_bytes(round(level.bandwidth_bytes_s))}/s"
        shared = level.shared_bandwidth_bytes_s
        limit = "" if shared is None else f", {readable_bytes(round(shared))}/s by all of a node together"
        yield f"{cluster.name}{reach}: latency {readable_seconds(level.latency_s)}, {rate}{limit}"
