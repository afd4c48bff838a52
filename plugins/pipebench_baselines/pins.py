"""Pins and clusters that the plain baselines refuse."""

from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem


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
