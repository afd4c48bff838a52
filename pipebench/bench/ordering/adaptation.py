"""A partition made for one regime, run in the other: with which micro-batches it is tried there."""

from msgspec.structs import replace

from pipebench.algorithms.micro_batches import honours_size, micro_batch_candidates, pinned_sizes
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem


def adapted_plans(problem: Problem, plan: Plan) -> tuple[Plan, ...]:
    """The stages of a plan with each micro-batch that suits `problem`; what is in flight is left to schedulers.

    A micro-batch that was best without a flush may leave a pipeline that is flushed at every update with nothing
    to overlap, and the other way round. Pinned micro-batches stay. Without a flush all stages have one size and
    k = 1, because a pattern repeats with each micro-batch; with one, plans of several sizes stay as they are.
    Empty where no size divides the mini-batch.
    """
    sizes = {stage.micro_batch for stage in plan.stages}
    mixed = len(sizes) > 1 or any(stage.k > 1 for stage in plan.stages)
    if mixed and problem.regime.mode == "sync":
        return (plan.without_in_flight(),)
    counts = sorted({stage.sharers for stage in plan.stages})
    pins = problem.pins
    if pins.micro_batch is None and pins.micro_batch_size is None:
        sizes |= _offered(problem, counts)
    else:
        sizes = set(pinned_sizes(problem, counts) or ())
    usable = (size for size in sorted(sizes) if _suffices(plan, size) and _goes(problem, plan, size))
    return tuple(_at(plan, size) for size in usable)


def _offered(problem: Problem, counts: list[int]) -> set[int]:
    try:
        return set(micro_batch_candidates(problem, counts))
    except UnsupportedProblem:
        return set()


def _suffices(plan: Plan, size: int) -> bool:
    """Whether that micro-batch has a sample for each replica, and for each part of its batch that is split."""
    return all(
        size >= stage.sharers
        and all(-(-size // stage.sharers) >= split.get("batch", 1) for split in stage.sharding)
        for stage in plan.stages
    )


def _goes(problem: Problem, plan: Plan, size: int) -> bool:
    """Whether that micro-batch divides the mini-batch and gives replicas the samples that are pinned for one."""
    honoured = all(honours_size(problem, size, stage.sharers) for stage in plan.stages)
    return honoured and problem.mini_batch % (size * plan.all_pipelines) == 0


def _at(plan: Plan, micro_batch: int) -> Plan:
    """The plan with that micro-batch at every stage."""
    stages = (replace(stage, in_flight=0, k=1, micro_batch=micro_batch) for stage in plan.stages)
    return replace(plan, stages=tuple(stages))


def sizes(plan: Plan) -> tuple[int, ...]:
    """The micro-batches of a plan, each once, ascending."""
    return tuple(sorted({stage.micro_batch for stage in plan.stages}))


def changes(before: Plan, after: Plan) -> tuple[str, ...]:
    """What was changed, in words for the row."""
    found = ["with another micro-batch than planned"] if sizes(before) != sizes(after) else []
    if max(stage.k for stage in before.stages) > max(stage.k for stage in after.stages):
        found.append("with k = 1 at every stage")
    return tuple(found)
