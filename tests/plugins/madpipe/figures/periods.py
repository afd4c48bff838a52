"""Results of the grid made by hand."""

from collections.abc import Iterable, Mapping

from pipebench.domain.artefact import Cell, Result
from pipebench.domain.row import Status
from tests.artefacts.results import row_result

Periods = Mapping[tuple[str, int, float, float], Mapping[str, tuple[float | None, float | None]]]
"""(network, P, M in GB, beta) to contender to (period in s, or None: infeasible; estimate in s or None)."""


def result(
    at: dict[str, str | float], period_s: float | None, estimate_s: float | None, status: Status | None = None
) -> Result:
    """One cell; without a period it is infeasible unless a status is given."""
    cell = Cell(at=at, planner=str(at["series"]), profile="made", devices=2, memory="4GB")
    return row_result(
        cell,
        status or ("ok" if period_s is not None else "infeasible"),
        reason="" if period_s is not None else "does not fit",
        simulated_s=period_s,
        claimed_s=estimate_s,
    )


def results(periods: Periods, sequential: Mapping[str, float] | None = None) -> list[Result]:
    """All of them, and U(1, L) by network."""
    made = [
        result({"network": network, "series": "sequential"}, s, s) for network, s in (sequential or {}).items()
    ]
    for (network, devices, memory, bandwidth), contenders in periods.items():
        for key, (period, estimate) in contenders.items():
            at: dict[str, str | float] = {"network": network, "devices": float(devices), "memory_gb": memory}
            made.append(result(at | {"bandwidth_gb_s": bandwidth, "series": key}, period, estimate))
    return made


def along_memory(**contenders: Iterable[float | None]) -> Periods:
    """One network at P = 4 and 12 GB/s: periods of each contender at 4, 8, 12, … GB, estimates half of them."""
    periods: dict[tuple[str, int, float, float], dict[str, tuple[float | None, float | None]]] = {}
    for key, values in contenders.items():
        for step, value in enumerate(values):
            place = ("resnet50", 4, 4.0 * (step + 1), 12.0)
            periods.setdefault(place, {})[key] = (value, None if value is None else value / 2)
    return periods
