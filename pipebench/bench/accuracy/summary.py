"""What a comparison with measured runs comes to: rows, and what they say in groups."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from pipebench.bench.accuracy.assumptions import Assumption
from pipebench.bench.accuracy.metrics import Errors, coverage, errors_of, mean, percentile, regret
from pipebench.bench.accuracy.run import Run
from pipebench.bench.accuracy.sizes import plain_name
from pipebench.bench.standings.statistics import tau_b
from pipebench.domain.value import Value
from pipebench.domain.verdict import Fit

Axis = Literal["model", "source", "gpus", "degrees"]
FEWEST_LAYOUTS = 4
"""Runs of one model, GPU count and mini-batch that say something about a choice among them."""


class AccuracyRow(Value, frozen=True, kw_only=True):
    """One run. measured_s, simulated_s: of one iteration. low_s, high_s: the interval, None where there is none.
    memory_bytes: predicted peak; memory_high_bytes: the upper end of its interval, with context and libraries.
    measured_memory_bytes: of the fullest GPU. device_memory_bytes: what each device has. fit: whether the upper
    end is within it. reason: why there is no prediction, the same for all runs of one kind; detail: the figures of
    this one. error: (simulated - measured) / measured. group: its model and devices.
    """

    id: str
    group: str
    measured_s: float
    simulated_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    error: float | None = None
    memory_bytes: int | None = None
    memory_high_bytes: int | None = None
    measured_memory_bytes: int | None = None
    device_memory_bytes: int | None = None
    fit: Fit | None = None
    reason: str = ""
    detail: str = ""
    assumptions: tuple[Assumption, ...] = ()


class Group(Value, frozen=True, kw_only=True):
    """The errors of some rows. axis: what its rows have in common."""

    axis: Axis
    name: str
    errors: Errors


class Layouts(Value, frozen=True, kw_only=True):
    """Layouts of one model, GPU count and mini-batch. tau: rank agreement (Kendall's tau-b). regret: how much
    longer the layout takes that the simulation would choose than the best, as measured.
    """

    name: str
    count: int
    tau: float | None
    regret: float


class Memory(Value, frozen=True, kw_only=True):
    """errors: of predicted peaks. at_or_above: share of rows whose upper end is not below the measured peak."""

    errors: Errors
    at_or_above: float


class Variant(Value, frozen=True, kw_only=True):
    """errors: of the rows where the field is assumed, with this value. usual: whether it is the one taken."""

    field: str
    value: str
    usual: bool
    count: int
    errors: Errors | None = None


class Accuracy(Value, frozen=True, kw_only=True):
    """rows: all runs. errors: of those with a prediction. groups: along each axis. layouts: with their means and
    the 90th percentile of regret. with_interval: rows that have one. covered: the share of them that it holds for.
    reasons: runs without a prediction. inferred: of predicted runs, how often whoever read the source inferred a
    column. variants: what was assumed.
    """

    rows: tuple[AccuracyRow, ...]
    errors: Errors | None
    groups: tuple[Group, ...]
    layouts: tuple[Layouts, ...]
    mean_tau: float | None
    mean_regret: float | None
    regret_90: float | None
    memory: Memory | None
    with_interval: int
    covered: float | None
    reasons: dict[str, int]
    inferred: dict[str, int]
    variants: tuple[Variant, ...]


def group_name(run: Run) -> str:
    """Model, shape and devices of a run."""
    shape = f" {run.layers}x{run.hidden}" if run.layers and run.hidden else ""
    return f"{plain_name(run.model)}{shape} on {run.gpus} x {run.device}"


def device_of(group: str) -> str:
    """The device in a `group_name`."""
    return group.rpartition(" x ")[2]


def degrees_name(run: Run) -> str:
    """The degrees as they are said."""
    said = {"tp": run.tp, "pp": run.pp, "dp": run.dp, "vpp": run.vpp}
    return " ".join(f"{name}{value}" for name, value in said.items() if value) or "not said"


AXES: dict[Axis, Callable[[Run], str]] = {
    "model": group_name,
    "source": lambda run: run.source or "not said",
    "gpus": lambda run: f"{run.gpus} GPUs",
    "degrees": degrees_name,
}


def usual_variants(runs: Iterable[tuple[Sequence[Assumption], float | None, float]]) -> list[Variant]:
    """The errors of the runs of each assumption, as it was made. runs: what each assumes, and its seconds,
    simulated and measured.
    """
    members: dict[tuple[str, str], list[tuple[float | None, float]]] = {}
    for assumptions, simulated_s, measured_s in runs:
        for each in assumptions:
            members.setdefault((each.field, each.value), []).append((simulated_s, measured_s))
    return [
        Variant(
            field=field,
            value=value,
            usual=True,
            count=len(listed),
            errors=errors_of([(seconds, measured_s) for seconds, measured_s in listed if seconds is not None]),
        )
        for (field, value), listed in sorted(members.items())
    ]


def summary(runs: Sequence[Run], rows: Sequence[AccuracyRow], variants: Sequence[Variant] = ()) -> Accuracy:
    """The figures of rows, one for each run in the same order. variants: as they were run."""
    layouts = _layouts(runs, rows)
    regrets = [each.regret for each in layouts]
    intervals, covered = coverage([(row.low_s, row.measured_s, row.high_s) for row in rows])
    return Accuracy(
        rows=tuple(rows),
        errors=errors_of(_pairs(rows)),
        groups=tuple(group for axis in AXES for group in _groups(axis, runs, rows)),
        layouts=layouts,
        mean_tau=mean([each.tau for each in layouts if each.tau is not None]),
        mean_regret=mean(regrets),
        regret_90=percentile(regrets, 0.9),
        memory=_memory(rows),
        with_interval=intervals,
        covered=covered,
        reasons=dict(Counter(row.reason for row in rows if row.reason).most_common()),
        inferred=_inferred(runs, rows),
        variants=tuple(variants),
    )


def _inferred(runs: Sequence[Run], rows: Sequence[AccuracyRow]) -> dict[str, int]:
    predicted = (run for run, row in zip(runs, rows, strict=True) if row.simulated_s is not None)
    return dict(Counter(name for run in predicted for name in run.inferred).most_common())


def _pairs(rows: Sequence[AccuracyRow]) -> list[tuple[float, float]]:
    return [(row.simulated_s, row.measured_s) for row in rows if row.simulated_s is not None]


def _groups(axis: Axis, runs: Sequence[Run], rows: Sequence[AccuracyRow]) -> list[Group]:
    members: dict[str, list[AccuracyRow]] = {}
    for run, row in zip(runs, rows, strict=True):
        members.setdefault(AXES[axis](run), []).append(row)
    found = ((name, errors_of(_pairs(listed))) for name, listed in members.items())
    return [Group(axis=axis, name=name, errors=errors) for name, errors in found if errors is not None]


def _layouts(runs: Sequence[Run], rows: Sequence[AccuracyRow]) -> tuple[Layouts, ...]:
    """Equal in all but degrees, micro-batch, schedule and recomputation, which make a layout."""
    members: dict[tuple[object, ...], list[AccuracyRow]] = {}
    for run, row in zip(runs, rows, strict=True):
        if row.simulated_s is not None and run.gbs:
            alike = group_name(run), run.seq, run.gbs, run.framework, run.precision
            members.setdefault(alike, []).append(row)
    found = []
    for key, listed in members.items():
        if len(listed) >= FEWEST_LAYOUTS:
            predicted = [row.simulated_s for row in listed if row.simulated_s is not None]
            measured = [row.measured_s for row in listed]
            found.append(
                Layouts(
                    name=f"{key[0]}, mini-batch {key[2]}",
                    count=len(listed),
                    tau=tau_b(predicted, measured),
                    regret=regret(predicted, measured),
                )
            )
    return tuple(found)


def _memory(rows: Sequence[AccuracyRow]) -> Memory | None:
    known = [
        (row.memory_bytes, row.memory_high_bytes or row.memory_bytes, row.measured_memory_bytes)
        for row in rows
        if row.memory_bytes is not None and row.measured_memory_bytes
    ]
    errors = errors_of([(float(predicted), float(measured)) for predicted, _, measured in known])
    if errors is None:
        return None
    return Memory(errors=errors, at_or_above=sum(high >= measured for _, high, measured in known) / len(known))
