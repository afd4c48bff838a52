"""A notice on devices that a plan leaves idle."""

from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem


def idle_devices(problem: Problem, plan: Plan) -> tuple[str, ...]:
    """One notice when there are some, none otherwise."""
    idle = problem.cluster.size - plan.devices_used
    return (f"{idle} of {problem.cluster.size} devices are not used",) if idle else ()
