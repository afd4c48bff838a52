"""What a row keeps of a search: its cost, the planner's claims, and why there is no plan."""

import statistics
from typing import Any

from pipebench.bench.searches.isolation.searched import Searched
from pipebench.bench.searches.request import Sample, SearchReport
from pipebench.domain.problem import Problem
from pipebench.domain.units import readable_bytes

COLD = "search time is cold: it ran once"


def search_fields(done: Searched) -> dict[str, Any]:
    """Columns of the search that every row has, and those of a search that found a plan."""
    report = done.report
    fields: dict[str, Any] = {"output": done.output, "search_peak_bytes": done.peak_bytes}
    if report.status != "found":
        return {**fields, "claimed_s": report.claimed_s}
    result = report.result
    assert result is not None
    notices = result.notices if report.samples else (*result.notices, COLD)
    return {
        **fields,
        **_times(report),
        "scheduler": report.scheduler,
        "counters": report.counters,
        "claimed_s": result.claimed_s,
        "claimed_native": result.claimed_native,
        "claimed_unit": result.claimed_unit,
        "class_bound_s": result.lower_bound_s,
        "class_bound_scope": result.bound_scope,
        "termination": result.termination,
        "notices": notices,
    }


def _times(report: SearchReport) -> dict[str, Any]:
    samples = report.samples
    if not samples:
        return {
            "search_cpu_s": max(0.0, report.cold_cpu_s - report.compile_cpu_s),
            "search_wall_s": max(0.0, report.cold_s - report.compile_s),
            "search_cold_s": report.cold_s,
        }
    return {
        "search_cpu_s": statistics.median(sample.cpu_s for sample in samples),
        "search_wall_s": statistics.median(sample.wall_s for sample in samples),
        "search_cold_s": report.cold_s,
        "search_samples": tuple((sample.cpu_s, sample.wall_s) for sample in samples),
        "search_ratio": _ratios(samples),
    }


def _ratios(samples: tuple[Sample, ...]) -> dict[str, float]:
    """The median of search CPU over the calibration right before it: neighbours share the disturbance."""
    return {
        flavour: statistics.median(
            sample.cpu_s / beside for sample in samples if (beside := sample.calibration_cpu_s[flavour]) > 0
        )
        for flavour in samples[0].calibration_cpu_s
        if any(sample.calibration_cpu_s[flavour] > 0 for sample in samples)
    }


def failure_reason(
    report: SearchReport, problem: Problem, least_bytes: int | None, proven_bytes: int | None, timeout_s: float
) -> str:
    """One line: why there is no plan, and what memory would do where memory is what lacks."""
    if report.status == "timeout":
        return f"no plan within {timeout_s:g} s"
    if report.status != "infeasible":
        return report.reason
    has = f"{report.reason}; devices have {readable_bytes(problem.cluster.memory_bytes)}"
    needs = f", this planner needs {readable_bytes(least_bytes)}" if least_bytes else ""
    proven = f", any plan needs {readable_bytes(proven_bytes)}" if proven_bytes else ""
    return f"{has}{needs}{proven}"
