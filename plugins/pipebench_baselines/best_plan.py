"""The best of a few given plans by the suite's time of one mini-batch, and pins that the plain planners refuse."""

from collections.abc import Sequence

from pipebench.algorithms.chains.level_cuts import BALANCE, balance_permille
from pipebench.algorithms.planning import idle_devices, memory_limits, mini_batch_ns
from pipebench.costs.estimate import estimate
from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.result import PlanResult, Termination
from pipebench.hooks.context import Context


def refuse_unsupported(planner: str, problem: Problem, tensor_parallel: bool = False) -> None:
    """Raise UnsupportedProblem for tensor parallelism unless it has some, virtual stages, devices of several
    types.
    """
    pins = problem.pins
    if (pins.tensor_parallel or 1) > 1 and not tensor_parallel:
        raise UnsupportedProblem(f"{planner} has no tensor parallelism, {pins.tensor_parallel} is pinned")
    if (pins.virtual_stages or 1) > 1:
        raise UnsupportedProblem(f"{planner} has no virtual stages, {pins.virtual_stages} are pinned")
    kinds = sorted(set(problem.cluster.devices))
    if len(kinds) > 1:
        raise UnsupportedProblem(f"{planner} plans for devices of one type, these are {', '.join(kinds)}")


def best_plan(
    planner: str,
    problem: Problem,
    plans: Sequence[Plan],
    context: Context,
    notices: tuple[str, ...] = (),
    gpipe: bool = False,
) -> PlanResult:
    """The plan of the shortest mini-batch among those that fit, the first of equals. All are chains in the order
    listed.

    notices: what to say besides the devices that stay idle.
    gpipe (sync): schedule by gpipe, which keeps all micro-batches in flight; else by the regime's scheduler.

    Raises InfeasibleProblem with the need of the smallest plan when none fits.
    """
    model = CostModel(problem)
    needs = [least_peak_bytes(model, plan, gpipe) for plan in plans]
    limits = memory_limits(problem)
    for limit in limits:
        fitting = [plan for plan, need in zip(plans, needs, strict=True) if need <= limit]
        best: tuple[int, Plan] | None = None
        termination: Termination = "heuristic"
        for plan in fitting:
            if best is None:
                context.check_deadline()
            elif context.out_of_time():
                termination = "limit"
                break
            context.count("plans")
            time_ns = _gpipe_ns(problem, plan, context) if gpipe else mini_batch_ns(problem, plan, context)
            if time_ns is not None and (best is None or time_ns < best[0]):
                best = (time_ns, plan)
        if best is not None:
            context.count(BALANCE, balance_permille(model, best[1]))
            return PlanResult(
                plan=best[1],
                claimed_s=best[0] / NS_PER_S,
                termination=termination,
                notices=notices + idle_devices(problem, best[1]),
            )
    least = min(needs)
    if least <= limits[-1]:
        raise InfeasibleProblem(f"{planner}: the scheduler fits none of its plans into {limits[-1]} bytes")
    size = plans[needs.index(least)].stages[0].micro_batch
    raise InfeasibleProblem(f"{planner} needs {least} bytes on one device at micro-batch {size}")


def _gpipe_ns(problem: Problem, plan: Plan, context: Context) -> int:
    if context.services is None:
        return estimate(problem, plan)
    return context.simulated_ns(problem, plan, context.schedule("gpipe", problem, plan))


def least_peak_bytes(model: CostModel, plan: Plan, gpipe: bool = False) -> int:
    """The least peak memory of the fullest device, under any schedule of the scheduler for this regime.

    sync, 1F1B over a chain: the k-th stage from the end holds k micro-batches, or all there are. async: one,
    which 1F1B* reaches at a period as long as the whole chain. gpipe: all of them.
    """
    edges = model.messages(plan)
    count = len(plan.stages)
    peaks = []
    for position, stage in enumerate(plan.stages):
        micro_batches = model.problem.mini_batch // stage.micro_batch
        if gpipe:
            live = micro_batches
        else:
            live = 1 if model.problem.regime.mode == "async" else min(count - position, micro_batches)
        peaks.append(model.stage_memory(plan, position, edges).peak(live))
    return max(peaks)
