"""Where the copies of a plan's pipeline stand, and how many micro-batches each stage runs."""

from collections.abc import Sequence

from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem


def devices_of_copies(plan: Plan, devices: Sequence[int]) -> list[int]:
    """The ids that `devices` of the first copy have in every copy: shifted by the number of its devices."""
    shift = len({device for stage in plan.stages for device in stage.devices})
    return [device + copy * shift for copy in range(plan.copies) for device in devices]


def micro_batches_of(problem: Problem, plan: Plan, stage: Stage) -> int:
    """Micro-batches that a stage of one pipeline runs for one weight update."""
    return problem.mini_batch // plan.all_pipelines // stage.micro_batch
