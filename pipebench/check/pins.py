"""Whether a plan honours the pins of its problem."""

from collections import Counter
from collections.abc import Iterator

from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import of_layers, permits, repeated
from pipebench.domain.verdict import Verdict, Witness


def check_pins(problem: Problem, plan: Plan) -> Verdict:
    """The verdict on the pins of a plan that `check_plan` found valid; rule `shape`.

    tensor_parallel, micro_batch: of every stage.
    micro_batch_size: times the replicas that share each micro-batch, the micro-batch of every stage.
    data_parallel: replicas of every stage, in all pipelines and copies.
    pipeline: number of device sets of each pipeline.
    virtual_stages: stages of a pipeline on each set.
    recompute: of every stage, or of all its operators by their alternatives; `full` and `selective`: of every
    layer.
    """
    pins = problem.pins
    for position, stage in enumerate(plan.stages):
        sets = Counter(plan.stages[other].devices for other in plan.pipeline_of(position))
        if pins.pipeline is not None and len(sets) != pins.pipeline:
            return _shape_verdict(
                f"pipeline is pinned to {pins.pipeline}, the plan has {len(sets)} device sets", None
            )
        for name, pinned, found in _of_stage(problem, plan, stage, sets[stage.devices]):
            if pinned is not None and pinned != found:
                return _shape_verdict(f"{name} is pinned to {pinned}, stage {position} has {found}", position)
    return Verdict(status="valid")


def _of_stage(problem: Problem, plan: Plan, stage: Stage, sharers: int) -> Iterator[tuple[str, object, object]]:
    pins = problem.pins
    yield "tensor_parallel", pins.tensor_parallel, stage.tensor_parallel
    yield "data_parallel", pins.data_parallel, stage.data_parallel * plan.all_pipelines
    yield "micro_batch", pins.micro_batch, stage.micro_batch
    yield "micro_batch_size", pins.micro_batch_size, _samples_of_replica(stage)
    yield "virtual_stages", pins.virtual_stages, sharers
    yield "recompute", pins.recompute, _recompute(problem, stage)


def _samples_of_replica(stage: Stage) -> int | str:
    """Samples of a micro-batch that one replica runs; in words where replicas have unequal shares."""
    each, left = divmod(stage.micro_batch, stage.sharers)
    return f"{stage.micro_batch} for {stage.sharers} replicas" if left else each


def _recompute(problem: Problem, stage: Stage) -> str:
    """The word that says how the stage recomputes; of several that are true the pinned one."""
    if stage.recompute == "stage":
        return "stage"
    graph, pinned = problem.profile.graph, problem.pins.recompute
    costs = problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
    run = [
        (graph.operators[op], costs[op].alternative(identifier) if identifier else None)
        for name, identifier in zip(stage.operators, stage.choice or ("",) * len(stage.operators), strict=True)
        for op in (graph.index[name],)
    ]
    if pinned is not None and all(permits(pinned, operator, way) for operator, way in run):
        return pinned
    if of_layers(pinned):
        run = [(operator, way) for operator, way in run if operator.layer is not None]
    found = {repeated(way) for _, way in run}
    return found.pop() if len(found) == 1 else "part"


def _shape_verdict(message: str, stage: int | None) -> Verdict:
    return Verdict(status="invalid", witness=Witness(rule="shape", message=message, stage=stage))
