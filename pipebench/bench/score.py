"""What a plan is worth: the figures of the suite, never those of the planner, and how far a prediction is off."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from pipebench.bench.machine.environment import disturbance, usage
from pipebench.bench.machine.time_limits import SCORE_S, time_limit
from pipebench.bench.prediction_interval import interval_of
from pipebench.bench.row_bounds import SUITE
from pipebench.bench.services import HostServices
from pipebench.bench.shape import shape_fields
from pipebench.check import check_pins, check_run, check_schedule
from pipebench.costs.estimate import estimate
from pipebench.costs.quantise import NS_PER_S
from pipebench.costs.sharded_stage import is_sharded
from pipebench.defaults import SIMULATOR
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import Schedule
from pipebench.domain.trace import Trace
from pipebench.domain.value import digest
from pipebench.domain.verdict import Verdict
from pipebench.simulation.metrics import Metrics, metrics
from pipebench.simulation.replay import replayed_s
from pipebench.simulation.simulate import simulate


def prediction_error(predicted_s: float | None, measured_s: float | None) -> float | None:
    """(predicted - measured) / measured: below zero where too much was promised."""
    if predicted_s is None or not measured_s:
        return None
    return (predicted_s - measured_s) / measured_s


def splits_operators(plan: Plan) -> bool:
    """Whether a stage cuts dims of its operators over devices."""
    return any(is_sharded(stage) for stage in plan.stages)


def judge(problem: Problem, plan: Plan, schedule: Schedule) -> Verdict:
    """Valid plan, valid schedule, memory, and pins honoured."""
    verdict = check_schedule(problem, plan, schedule)
    return verdict if verdict.status == "invalid" else _worse(verdict, check_pins(problem, plan))


def _worse(verdict: Verdict, pins: Verdict) -> Verdict:
    return pins if pins.status == "invalid" else verdict


def plan_fields(problem: Problem, plan: Plan, schedule: Schedule) -> dict[str, Any]:
    """What the plan is: its shape, micro-batches, samples in flight, hashes."""
    return {
        **shape_fields(problem, plan),
        "micro_batch": tuple(stage.micro_batch for stage in plan.stages),
        "in_flight": tuple(stage.in_flight for stage in plan.stages),
        "plan_id": digest(plan),
        "schedule_id": digest(schedule),
    }


def verdict_fields(verdict: Verdict) -> dict[str, Any]:
    """The check's answer and the memory that it found."""
    peaks = verdict.peak_bytes
    return {
        "verdict": verdict.status,
        "witness": verdict.witness,
        "fit": verdict.fit,
        "peak_memory_bytes": peaks,
        "memory_bytes": max(peaks.values(), default=None),
    }


def time_fields(
    services: HostServices,
    problem: Problem,
    plan: Plan,
    schedule: Schedule,
    executors: tuple[str, ...],
    bounds: Mapping[str, Any],
) -> tuple[dict[str, Any], list[Trace], list[str]]:
    """Estimated, simulated and measured seconds with what follows from them, the traces, and notices.

    An executor that fails costs its own columns only. A measured run that others disturbed has no error.
    """
    fields: dict[str, Any] = {"estimated_s": estimate(problem, plan) / NS_PER_S}
    traces: list[Trace] = []
    notices: list[str] = []
    ran: list[str] = []
    undisturbed = False
    for name in executors:
        noted: list[str] = []
        before = usage()
        try:
            if name == SIMULATOR:
                with time_limit(SCORE_S, "simulating", "this limit is apart from --timeout"):
                    trace = simulate(problem, plan, schedule)
            else:
                trace = services.execute(name, problem, plan, schedule, noted)
        except PipebenchError as error:
            notices.append(f"executor {name}: {error}")
            continue
        if trace.origin == "measured":
            disturbances = disturbance(before, usage())
            wrong = check_run(problem, plan, schedule, trace)
            if wrong is not None:
                notices.append(f"executor {name}: its trace is of no such run: {wrong.message}")
                continue
            noted += disturbances
            undisturbed = not disturbances
        notices += [f"executor {name}: {line}" for line in noted]
        ran.append(name)
        traces.append(trace)
        measured = metrics(problem, plan, trace)
        if trace.origin == "simulated" and name != SIMULATOR:
            notices.append(f"executor {name} simulates by itself, which does not count")
            continue
        fields.update(_metric_fields(measured, trace.origin, problem.mini_batch))
        if trace.origin == "measured" and undisturbed:
            with suppress(PipebenchError):  # an executor may run what the simulator cannot
                fields["replayed_s"] = replayed_s(problem, plan, schedule, trace)
    interval = interval_of(problem, plan, fields["simulated_s"]) if "simulated_s" in fields else None
    if interval is not None:
        fields |= {"simulated_low_s": interval.low_s, "simulated_high_s": interval.high_s}
    fields["executor"] = ",".join(ran)
    if undisturbed:
        fields["measured_error"] = prediction_error(fields.get("simulated_s"), fields.get("measured_s"))
    value = fields.get("simulated_s") or fields["estimated_s"]
    bound = bounds["bound_s"]
    fields["gap"] = (value - bound) / bound if bound else None
    fields.setdefault("throughput", problem.mini_batch / value if value else None)
    return fields, traces, notices


ROUNDING = 1e-9
"""Relative; times are sums of integers of ns, brought to seconds."""


def impossible(fields: Mapping[str, Any]) -> str:
    """Why the figures of a row cannot all be true, in one line; '' when they can.

    Nothing is faster than a proven bound: over all plans, or over a class that the plan is of. A planner's own
    plan is not faster than its bound.
    """
    simulated_s, bound_s, class_s = (fields.get(name) for name in ("simulated_s", "bound_s", "class_bound_s"))
    if simulated_s is None:
        return ""
    if bound_s is not None and simulated_s < bound_s * (1 - ROUNDING):
        return f"simulated {simulated_s:.6g} s is below the proven bound of {bound_s:.6g} s"
    if class_s is None or class_s <= simulated_s * (1 + ROUNDING):
        return ""
    if fields.get("class_bound_by") == SUITE:
        return f"simulated {simulated_s:.6g} s is below the bound of {class_s:.6g} s over plans of its class"
    return f"it claims that no plan takes less than {class_s:.6g} s, its own plan takes {simulated_s:.6g} s"


def _metric_fields(measured: Metrics, origin: str, mini_batch: int) -> dict[str, Any]:
    if origin == "measured":
        return {
            "measured_s": measured.seconds,
            "measured_throughput": mini_batch / measured.seconds if measured.seconds else None,
            "measured_memory_bytes": max(measured.peak_memory_bytes.values(), default=None),
        }
    return {
        "simulated_s": measured.seconds,
        "throughput": measured.throughput,
        "bubble": measured.bubble,
    }
