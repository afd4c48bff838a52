"""Which plans torch.distributed.pipelining can run: chains of single stages under a finite schedule."""

from pipebench.costs.messages import messages
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import PeriodicSchedule, Schedule


def chain_of(problem: Problem, plan: Plan, schedule: Schedule) -> tuple[int, ...]:
    """The stages in the order in which samples pass through them.

    Raises UnsupportedProblem with what torch.distributed.pipelining cannot express.
    """
    if isinstance(schedule, PeriodicSchedule):
        raise _refusal("a periodic schedule has no flush, and it flushes at each mini-batch")
    if plan.copies > 1:
        raise _refusal(f"{plan.copies} copies of the pipeline run beside one another")
    for position, stage in enumerate(plan.stages):
        if stage.data_parallel > 1:
            how = "take micro-batches in turn" if stage.turns > 1 else "share a micro-batch"
            raise _refusal(f"stage {position} has {stage.data_parallel} replicas that {how}")
        if stage.micro_batch != plan.stages[0].micro_batch:
            raise _refusal(f"stages have micro-batches of {plan.stages[0].micro_batch} and {stage.micro_batch}")
    chain = _chain(problem, plan)
    _refuse_outputs(problem, plan, chain[-1])
    if any(stage.recompute == "stage" for stage in plan.stages) and any(
        "W" in lane.kinds for lane in schedule.lanes
    ):
        raise _refusal("a stage is recomputed and its backward is split")
    return chain


def _refusal(reason: str) -> UnsupportedProblem:
    return UnsupportedProblem(f"engine=pipelining: {reason}", "engine=own runs it")


def _chain(problem: Problem, plan: Plan) -> tuple[int, ...]:
    """The stages in the order of the chain.

    Raises UnsupportedProblem where a stage sends to several others, where a sent tensor has no gradient, and where
    anything else orders the stages.
    """
    follows: dict[int, int] = {}
    tensors = problem.profile.graph.tensors
    for message in messages(problem.profile.graph, plan):
        if follows.setdefault(message.source, message.target) != message.target:
            both = f"{follows[message.source]} and {message.target}"
            raise _refusal(f"stage {message.source} sends to stages {both}, so the stages are no chain")
        if not tensors[message.tensor].gradient_bytes_per_sample:
            raise _refusal(f"stage {message.source} sends {tensors[message.tensor].name!r}, which has no gradient")
    found = [stage for stage in range(len(plan.stages)) if stage not in follows.values()][:1]
    while found[-1] in follows:
        found.append(follows[found[-1]])
    if len(found) < len(plan.stages):
        alone = min(set(range(len(plan.stages))) - set(found))
        raise _refusal(f"stage {alone} is beside the others, so the stages are no chain")
    for edge in plan.order_edges:
        if found.index(edge[0]) + 1 != found.index(edge[1]):
            raise _refusal(f"stage {edge[1]} has to wait for stage {edge[0]} without receiving anything")
    return tuple(found)


def _refuse_outputs(problem: Problem, plan: Plan, last: int) -> None:
    graph = problem.profile.graph
    for position, stage in enumerate(plan.stages):
        for name in stage.operators:
            operator = graph.index[name]
            ends = [t for t in graph.outputs[operator] if not graph.consumers[t]]
            if ends and position != last and not graph.operators[operator].constant:
                raise _refusal(f"stage {position} makes an output of the model, {name!r}, before the last stage")
