"""Sizes: device counts and ids, micro-batches that divide what a pipeline computes."""

from pipebench.check.copies import devices_of_copies
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.verdict import Witness


def wrong_size(problem: Problem, plan: Plan) -> Witness | None:
    """The first stage whose devices or micro-batch cannot be: they do not exist, do not divide, do not match."""
    if problem.mini_batch % plan.all_pipelines:
        pipelines = f"{plan.pipelines} pipelines in each of " if plan.pipelines > 1 else ""
        message = f"{pipelines}{plan.copies} copies do not divide the mini-batch {problem.mini_batch}"
        return Witness(rule="shape", message=message)
    if plan.devices_used > problem.cluster.size:
        message = f"{plan.copies} copies need {plan.devices_used} devices, the cluster has {problem.cluster.size}"
        return Witness(rule="shape", message=message)
    samples = problem.mini_batch // plan.all_pipelines
    for position in range(len(plan.stages)):
        message = _devices(plan, position) or _micro_batch(plan, position, samples)
        if message:
            return Witness(rule="shape", message=message, stage=position)
        for device in devices_of_copies(plan, plan.stages[position].devices):
            if not 0 <= device < problem.cluster.size:
                message = f"stage {position} uses device {device}; the cluster has 0 to {problem.cluster.size - 1}"
                return Witness(rule="shape", message=message, stage=position, device=device)
    return None


def _devices(plan: Plan, position: int) -> str:
    stage = plan.stages[position]
    needed = stage.data_parallel * stage.tensor_parallel
    if len(stage.devices) == needed:
        return ""
    return (
        f"stage {position} has {len(stage.devices)} devices, data_parallel {stage.data_parallel} "
        f"x tensor_parallel {stage.tensor_parallel} needs {needed}"
    )


def _micro_batch(plan: Plan, position: int, samples: int) -> str:
    stage = plan.stages[position]
    if samples % stage.micro_batch:
        whose = f"the {samples} samples of a {'pipeline' if plan.pipelines > 1 else 'copy'}"
        return f"stage {position}: micro-batch {stage.micro_batch} does not divide {whose}"
    if stage.data_parallel > stage.micro_batch:
        return f"stage {position}: {stage.data_parallel} replicas share a micro-batch of {stage.micro_batch}"
    return ""
