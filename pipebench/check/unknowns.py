"""What the shared cost model cannot price: the verdict is then `unknown`, not a guess."""

from pipebench.check.copies import devices_of_copies
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem


def beyond_the_costs(problem: Problem, plan: Plan) -> str:
    """Why the costs of a well-formed plan are not known; '' when they are."""
    if problem.regime.mode == "async" and plan.pipelines > 1:
        return (
            f"the weights of {plan.pipelines} pipelines are reduced together, and in async nothing says how many "
            "versions of them each one keeps"
        )
    for position, stage in enumerate(plan.stages):
        mirrored = [device for mirror in plan.mirrors(position) for device in plan.stages[mirror].devices]
        types = {problem.cluster.devices[device] for device in devices_of_copies(plan, mirrored)}
        if len(types) > 1:
            return f"stage {position} runs on devices of several types ({', '.join(sorted(types))})"
        if any(parts > 1 for split in stage.sharding for parts in split.values()):
            unsaid = _unsaid(problem, stage)
            if unsaid:
                return f"stage {position} splits dims of its operators, but {unsaid}"
    return ""


def _unsaid(problem: Problem, stage: Stage) -> str:
    """Of which tensor an operator does not say how its dims cut it; '' if of none.

    Operators that say nothing of any tensor are taken to have samples as the first axis of each, so only a split
    of other dims leaves that open.
    """
    graph = problem.profile.graph
    for name, split in zip(stage.operators, stage.sharding, strict=True):
        position = graph.index[name]
        operator = graph.operators[position]
        made = (graph.tensors[tensor].name for tensor in graph.outputs[position])
        for tensor in (*operator.inputs, *made, *operator.parameters):
            open_split = any(dim != "batch" and parts > 1 for dim, parts in split.items())
            if tensor not in operator.axes and (operator.axes or open_split):
                return f"operator {name!r} does not say which of them the axes of {tensor!r} span"
    return ""
