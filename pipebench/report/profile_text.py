"""A profile as people read it: totals, and its most expensive operators."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from pipebench.domain.profile import DeviceCosts, Profile
from pipebench.report.calibration_text import print_calibration
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
    for label, value in (("by", origin.profiler), ("on", origin.device), ("saved", origin.saved)):
        if value:
            console.print(Text(f"{label}: {value}"), soft_wrap=True)
    for costs in profile.costs:
        console.print(Text(f"whole model on {costs.device_type}", style="bold"))
        console.print(_totals(costs))
        largest = costs.micro_batches[-1]
        console.print(Text(f"most expensive operators at micro-batch {largest}", style="bold"), soft_wrap=True)
        console.print(_dearest(costs))
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
            escape(operator.operator),
            seconds(operator.forward_s[-1]),
            seconds(operator.backward_s[-1]),
            gigabytes(round(operator.saved_bytes_per_sample * largest)),
        )
    return made
