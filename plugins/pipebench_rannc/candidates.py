"""A cut of the blocks into stages: its plan, and how long it takes by closed forms."""

from dataclasses import dataclass

from pipebench.algorithms.blocks.grouped import group_name
from pipebench.costs.placement import place
from pipebench.domain.plan import Plan, Stage
from pipebench_rannc.runs import BlockRuns
from pipebench_rannc.space import MicroBatchFlow
from pipebench_rannc.stage_dp import StageCut
from pipebench_rannc.stage_tables import StageTables


@dataclass(frozen=True, slots=True)
class StageOf:
    """Blocks first … end - 1 on `replicas` devices of a copy. All times are in ns.

    forward, backward: of the stage; backward includes recomputation.
    there: messages of its outputs (released: of its inputs too).
    back: messages of their gradients.
    all_reduce: of its weights.
    """

    first: int
    end: int
    replicas: int
    recompute: bool
    forward: int
    backward: int
    there: int
    back: int
    all_reduce: int


@dataclass(frozen=True, slots=True)
class CutCandidate:
    """A flow and its stages in order.

    value: longest forward + longest backward by the stage search, in ns.
    """

    flow: MicroBatchFlow
    stages: tuple[StageOf, ...]
    value: int

    @property
    def bound_ns(self) -> int:
        """A lower bound on every schedule of the plan: each stage does its work and its all-reduce."""
        return max(
            self.flow.micro_batches * (stage.forward + stage.backward) + stage.all_reduce for stage in self.stages
        )

    @property
    def bottleneck_ns(self) -> int:
        """The value of the stage search times the steps of the pipeline."""
        return self.value * (self.flow.micro_batches + len(self.stages) - 1)

    @property
    def steps_ns(self) -> int:
        """The estimate of the released code, in ns.

        Each step of the pipeline takes the longest forward and backward of the stages that work in it, with their
        messages. The longest all-reduce is added.
        """
        last, micro_batches = len(self.stages) - 1, self.flow.micro_batches
        total = 0
        counted: dict[tuple[int, int], int] = {}
        for step in range(micro_batches + last):
            active = max(0, step - micro_batches + 1), min(step, last)
            if active not in counted:
                stages = self.stages[active[0] : active[1] + 1]
                counted[active] = max(s.forward + s.there for s in stages) + max(
                    s.backward + s.back for s in stages
                )
            total += counted[active]
        return total + max(stage.all_reduce for stage in self.stages)

    @property
    def estimate_ns(self) -> int:
        """About the time of 1F1B: one micro-batch through all stages, the others at the busiest stage's pace."""
        periods = [s.forward + s.backward + s.there + s.back for s in self.stages]
        paced = (self.flow.micro_batches - 1) * max(periods) + sum(periods)
        return max(paced + self.stages[0].all_reduce, self.bound_ns)


def cut_candidate(
    runs: BlockRuns, flow: MicroBatchFlow, cut: StageCut, tables: StageTables, from_end: bool, both: bool = False
) -> CutCandidate:
    """The stages of a cut.

    from_end: the blocks are numbered from the last.
    both: messages of inputs count too.
    """
    size, found = runs.size, []
    level = runs.model.problem.cluster.levels[0]
    start = 0
    for place_of, (end, replicas) in enumerate(cut.stages):
        of_class = min(place_of + 1, tables.recompute.shape[0]) - 1
        recompute = bool(tables.recompute[of_class, replicas, start, end])
        first, behind = (size - end, size - start) if from_end else (start, end)
        forward, backward = runs.times(-(-flow.micro_batch // replicas))
        there, back = runs.messages(flow.micro_batch, replicas, level, both)
        own = int(forward[first, behind])
        found.append(
            StageOf(
                first,
                behind,
                replicas,
                recompute,
                own,
                int(backward[first, behind]) + (own if recompute else 0),
                int(there[first, behind]),
                int(back[first, behind]),
                int(runs.update_ns(replicas, flow.shape.copies, flow.shape.devices)[first, behind]),
            )
        )
        start = end
    return CutCandidate(flow, tuple(reversed(found) if from_end else found), cut.value)


def plan_of(runs: BlockRuns, made: CutCandidate, by_block: bool = False) -> Plan:
    """The plan with its stages on consecutive devices, and the copies of the pipeline side by side.

    by_block: for the grouped problem, whose operators are the blocks.
    """
    flow = made.flow
    placed = place([stage.replicas for stage in made.stages], flow.shape.devices)
    return Plan(
        stages=tuple(
            Stage(
                operators=tuple(map(group_name, range(stage.first, stage.end)))
                if by_block
                else runs.blocks.operators(stage.first, stage.end),
                devices=devices,
                data_parallel=stage.replicas,
                micro_batch=flow.micro_batch,
                recompute="stage" if stage.recompute else "none",
            )
            for stage, devices in zip(made.stages, placed, strict=True)
        ),
        copies=flow.shape.copies,
    )
