"""What a contiguous planner can be asked: pins and regimes, and how many stages it may form."""

from pipebench.algorithms.contiguous import StageRange
from pipebench.domain.errors import InfeasibleProblem, UnsupportedProblem
from pipebench.domain.problem import Problem


def stage_range(problem: Problem) -> StageRange:
    """How many stages of one device each: the pinned pipeline degree, else anything up to the devices.

    Raises UnsupportedProblem for the sync regime, replicas, tensor parallelism, several stages a device and
    devices of several types; InfeasibleProblem when the pinned degree exceeds the devices.
    """
    pins, cluster = problem.pins, problem.cluster
    if problem.regime.mode != "async":
        raise UnsupportedProblem("this planner is for the async regime (periodic schedules, no flush)")
    for name in ("data_parallel", "tensor_parallel", "virtual_stages"):
        pinned = getattr(pins, name)
        if pinned is not None and pinned > 1:
            raise UnsupportedProblem(
                f"{name} is pinned to {pinned}; this planner puts one stage on one device",
                f"pin {name} to 1, or leave it free",
            )
    if len(set(cluster.devices)) > 1:
        raise UnsupportedProblem("this planner needs devices of one type")
    if pins.pipeline is None:
        return StageRange(1, cluster.size)
    if pins.pipeline > cluster.size:
        raise InfeasibleProblem(f"{pins.pipeline} stages are pinned, there are {cluster.size} devices")
    return StageRange(pins.pipeline, pins.pipeline)
