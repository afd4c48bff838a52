"""What the shared cost model cannot price: the verdict is then `unknown`, not a guess."""

from pipebench.check.copies import devices_of_copies
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem


def beyond_the_costs(problem: Problem, plan: Plan) -> str:
    """Why the costs of a well-formed plan are not known; '' when they are."""
    for position, stage in enumerate(plan.stages):
        types = {problem.cluster.devices[device] for device in devices_of_copies(plan, stage.devices)}
        if len(types) > 1:
            return f"stage {position} runs on devices of several types ({', '.join(sorted(types))})"
        if any(parts > 1 for split in stage.sharding for parts in split.values()):
            return f"stage {position} splits dims of its operators, which the cost of a stage does not cover yet"
    return ""
