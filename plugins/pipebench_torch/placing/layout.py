"""Which process runs which part of a plan, and which samples it sees."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import lcm

from pipebench.domain.errors import PipebenchError
from pipebench.domain.plan import Plan

Span = tuple[int, int]
"""Samples from the first up to, not with, the second."""


@dataclass(frozen=True)
class Layout:
    """A plan on processes: rank r runs the r-th used device. The copies of the pipeline follow one another.

    samples: of one mini-batch, for each copy.
    rounds: mini-batches that follow one another without a break.
    """

    plan: Plan
    samples: int
    rounds: int = 1

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The devices of the first copy, ascending."""
        return tuple(sorted({device for stage in self.plan.stages for device in stage.devices}))

    @property
    def world(self) -> int:
        """Number of processes."""
        return len(self.devices) * self.plan.copies

    def copy_of(self, rank: int) -> int:
        """The copy of the pipeline that a process belongs to."""
        return rank // len(self.devices)

    def device_of(self, rank: int) -> int:
        """The device of the first copy whose part a process plays."""
        return self.devices[rank % len(self.devices)]

    def rank_of(self, stage: int, replica: int, copy: int) -> int:
        """The process of one replica of a stage."""
        return copy * len(self.devices) + self.devices.index(self.plan.stages[stage].devices[replica])

    def ranks_of(self, stage: int) -> tuple[int, ...]:
        """All processes that hold the weights of a stage."""
        replicas = range(self.plan.stages[stage].data_parallel)
        return tuple(
            self.rank_of(stage, replica, copy) for copy in range(self.plan.copies) for replica in replicas
        )

    def stages_of(self, rank: int) -> tuple[int, ...]:
        """The stages that a process runs."""
        device = self.device_of(rank)
        return tuple(position for position, stage in enumerate(self.plan.stages) if device in stage.devices)

    def replica_of(self, stage: int, rank: int) -> int:
        """Which replica of a stage a process is."""
        return self.plan.stages[stage].devices.index(self.device_of(rank))

    def count(self, stage: int) -> int:
        """Micro-batches of a stage in all rounds."""
        return self.rounds * self.count_of_round(stage)

    def count_of_round(self, stage: int) -> int:
        """Micro-batches of a stage in one mini-batch."""
        return self.samples // self.plan.stages[stage].micro_batch

    def round_of(self, stage: int, micro_batch: int) -> int:
        """The mini-batch that a micro-batch belongs to."""
        return micro_batch * self.plan.stages[stage].micro_batch // self.samples

    def span(self, stage: int, micro_batch: int, replica: int) -> Span:
        """Samples of one replica's part of a micro-batch, counted over all rounds; parts differ by one at most.

        A replica that takes micro-batches in turn has the whole of its own.
        """
        size, turns = self.plan.stages[stage].micro_batch, self.plan.stages[stage].turns
        part, ways = replica // turns, self.plan.stages[stage].sharers
        start = micro_batch * size
        return start + part * size // ways, start + (part + 1) * size // ways

    def spans(self, stage: int, micro_batch: int) -> Iterator[tuple[int, Span]]:
        """Each replica that runs a micro-batch, with its part of it."""
        turns = self.plan.stages[stage].turns
        for replica in range(micro_batch % turns, self.plan.stages[stage].data_parallel, turns):
            yield replica, self.span(stage, micro_batch, replica)

    @cached_property
    def chunk(self) -> int:
        """The smallest number of samples that is whole micro-batches of every stage."""
        return lcm(*(stage.micro_batch for stage in self.plan.stages))


def layout_of(plan: Plan, mini_batch: int, rounds: int = 1) -> Layout:
    """The layout of a plan. Raises PipebenchError for several pipelines, and when copies or micro-batches do
    not divide the mini-batch.
    """
    if plan.pipelines > 1:
        raise PipebenchError(f"{plan.pipelines} pipelines share devices and weights: such plans cannot be run yet")
    if mini_batch % plan.copies:
        raise PipebenchError(f"{plan.copies} copies of the pipeline do not divide a mini-batch of {mini_batch}")
    samples = mini_batch // plan.copies
    for position, stage in enumerate(plan.stages):
        if samples % stage.micro_batch:
            raise PipebenchError(
                f"stage {position}: micro-batches of {stage.micro_batch} do not divide {samples} samples"
            )
    return Layout(plan, samples, rounds)


def overlap(one: Span, other: Span) -> Span | None:
    """The samples in both, None when there are none."""
    start, end = max(one[0], other[0]), min(one[1], other[1])
    return (start, end) if start < end else None
