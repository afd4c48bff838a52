"""A schedule of torch.distributed.pipelining as this project's, and the other way round."""

from pipebench.costs.lanes import lanes_of
from pipebench.costs.model import CostModel
from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan
from pipebench.domain.problem import Problem
from pipebench.domain.schedule import ALL_REDUCE, FiniteSchedule, Lane
from pipebench.formats.files import read_file
from pipebench.formats.torch_cells import Ranks, Step, Task, read_cells, write_cells
from pipebench.formats.torch_rules import Sound, sound


def read_torch_schedule(path: str) -> Sound:
    """A file, checked by every rule. Raises PipebenchError that names the place."""
    return sound(read_cells(read_file(path), path), path)


def as_schedule(problem: Problem, plan: Plan, found: Sound, source: str) -> FiniteSchedule:
    """The order on the devices of a plan, with the all-reduces that the plan needs behind it.

    Two tasks that overlap run one after the other. Raises PipebenchError where the plan has other stages, other
    placement or another number of micro-batches.
    """
    lanes, lane_of = lanes_of(plan)
    count = problem.mini_batch // (plan.stages[0].micro_batch * plan.all_pipelines)
    if len(found.rank_of) != len(plan.stages):
        raise PipebenchError(f"{source}: {len(found.rank_of)} stages, the plan has {len(plan.stages)}")
    if found.micro_batches != count:
        raise PipebenchError(f"{source}: {found.micro_batches} micro-batches, the plan has {count}")
    for stage, (rank, lane) in enumerate(zip(found.rank_of, lane_of, strict=True)):
        if rank != lane:
            raise PipebenchError(f"{source}: stage {stage} runs on rank {rank}, in the plan on device set {lane}")
    model = CostModel(problem)
    made = []
    for rank, steps in enumerate(found.ranks):
        tasks = [task for step in steps for task in step.tasks if task.kind != ALL_REDUCE]
        here = [stage for stage, lane in enumerate(lane_of) if lane == rank]
        tasks += [
            Task(stage, ALL_REDUCE, 0) for stage in here if model.needs_update_task(plan.stages[stage], plan)
        ]
        made.append(
            Lane(
                devices=lanes[rank],
                stage=tuple(task.stage for task in tasks),
                micro_batch=tuple(task.micro_batch for task in tasks),
                kinds="".join(task.kind for task in tasks),
            )
        )
    return FiniteSchedule(lanes=tuple(made))


def cells_of(plan: Plan, schedule: FiniteSchedule) -> bytes:
    """The CSV of a schedule, ranks in the order of their first stage; all-reduces are torch's own business."""
    lanes, _ = lanes_of(plan)
    by_devices = {tuple(sorted(lane.devices)): lane for lane in schedule.lanes}
    ranks: Ranks = tuple(
        tuple(
            Step(column, (Task(stage, kind, number),))
            for column, (stage, kind, number) in enumerate(
                zip(lane.stage, lane.kinds, lane.micro_batch, strict=True)
            )
            if kind != ALL_REDUCE
        )
        for lane in (by_devices[devices] for devices in lanes)
    )
    return write_cells(ranks)
