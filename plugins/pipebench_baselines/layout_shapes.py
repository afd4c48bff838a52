"""The degrees that `layout` tries: the same tensor and data parallelism and micro-batch on every stage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipebench.algorithms.chains.level_cuts import Homes
from pipebench.algorithms.chains.stage_row import Way, degrees, not_offered, way
from pipebench.algorithms.micro_batches import divisors, micro_batch_candidates, pinned_sizes
from pipebench.domain.errors import InfeasibleProblem, InvalidValue, UnsupportedProblem
from pipebench.domain.placement import PlacementKind, pipelines_of_kind, sets_of_stages
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import RecomputePin
from pipebench_baselines.pin_conflicts import all_pins, no_degrees, no_micro_batch

MOST_VIRTUAL = 5
"""Stages a device that are tried where the number is not pinned."""


OWN_PLACEMENTS: tuple[PlacementKind, ...] = ("in-turn",)
"""Where the user names no scheduler: 1F1B runs one stage a device, interleaved 1F1B several."""
_PINS: dict[PlacementKind, str] = {
    "v": "a V has --vpp 2",
    "mirrored": "mirrored pipelines have --vpp 1, an even --pp and an even --dp",
}
"""What a placement asks of the pins."""
RECOMPUTED: tuple[RecomputePin, ...] = ("none", "stage")
"""What is tried where recomputation is not pinned; of a language model under `stage` each layer runs again."""
AGAIN: dict[RecomputePin, str] = {
    "none": "",
    "stage": ", recomputed by stage",
    "full": ", recomputed by layer",
    "selective": ", recomputed selectively",
}
_KINDS: dict[PlacementKind, tuple[PlacementKind, ...]] = {"listed": ("apart", "in-turn", "wave")}
"""What is tried for a scheduler that takes `listed` placements."""


@dataclass(frozen=True)
class LayoutShape:
    """The same degrees and micro-batch for every stage.

    micro_batch: samples of all replicas in one pipeline.
    virtual: stages of one pipeline on each device.
    placement: where stages stand.
    """

    way: Way
    data_parallel: int
    pipeline: int
    virtual: int
    micro_batch: int
    placement: PlacementKind = "in-turn"

    @property
    def pipelines(self) -> int:
        """Pipelines that share the devices."""
        return pipelines_of_kind(self.placement) or 1

    @property
    def stages(self) -> int:
        """Stages of one pipeline."""
        return self.pipeline * self.virtual

    @property
    def sharers(self) -> int:
        """Stages on each device, those of all pipelines."""
        return self.virtual * self.pipelines

    @cached_property
    def homes(self) -> Homes:
        """The device sets that run each stage of a pipeline, one in each of the pipelines."""
        sets = sets_of_stages(self.placement, self.pipeline, self.stages * self.pipelines)
        return [tuple(dict.fromkeys(sets[stage :: self.stages])) for stage in range(self.stages)]

    @property
    def devices(self) -> int:
        """Devices of one stage."""
        return self.data_parallel * self.way.tensor_parallel

    def __str__(self) -> str:
        again = AGAIN["full" if self.way.one_by_one else self.way.again]
        return (
            f"TP{self.way.tensor_parallel} DP{self.data_parallel} PP{self.pipeline} VPP{self.virtual}, "
            f"micro-batch "
            f"{self.micro_batch}{again}"
            + ("" if self.placement in ("apart", "in-turn") else f", placement {self.placement}")
        )


def layout_shapes(problem: Problem, items: int, placements: Sequence[PlacementKind] = ()) -> Iterator[LayoutShape]:
    """All shapes that honour the pins and use all devices (or fewer, where the three degrees are pinned so).

    placements: those that the user's scheduler takes; empty without one.

    Raises UnsupportedProblem for a tensor-parallel degree that no operator offers. Raises InfeasibleProblem where
    pins ask for more devices or stages than there are, or the degrees do not divide the devices.
    """
    pins, size = problem.pins, problem.cluster.size
    tensors = (pins.tensor_parallel,) if pins.tensor_parallel else degrees(problem)
    again = RECOMPUTED if pins.recompute is None else (pins.recompute,)
    found = suits = shared = False
    for tensor in tensors:
        ways = [made for each in again if (made := way(problem, tensor, each)) is not None]
        if not ways:
            if pins.tensor_parallel is None:
                continue
            raise not_offered("layout", problem, tensor)
        for pipeline, replicas, rounds, kind in _arrangements(problem, tensor, items, placements):
            found = True
            everywhere = replicas * (pipelines_of_kind(kind) or 1)
            if not problem.regime.shares_experts_over(replicas, tensor):
                continue
            if not problem.regime.shards_evenly(everywhere):
                continue
            shared = True
            if pinned_sizes(problem, (replicas,)) == ():
                continue
            for micro_batch in micro_batch_candidates(problem, (replicas,)):
                divides = problem.mini_batch % (micro_batch * (pipelines_of_kind(kind) or 1)) == 0
                whole = bool(placements) or rounds == 1 or _groups(problem, micro_batch, pipeline)
                if micro_batch % replicas == 0 and divides and whole:
                    suits = True
                    yield from (LayoutShape(each, replicas, pipeline, rounds, micro_batch, kind) for each in ways)
    if not found and placements:
        raise UnsupportedProblem(
            f"{all_pins(problem)} do not go with {size} devices, a model of at most {items} stages and the "
            f"placement {' or '.join(placements)} that the scheduler takes",
            "; ".join(("pin other degrees, or fewer of them", *(_PINS[k] for k in placements if k in _PINS))),
        )
    if not found:
        raise no_degrees(problem, items)
    if not shared:
        ranks, what, option = problem.regime.expert_ranks, "experts", "--ep"
        if problem.regime.shards_in_groups:
            ranks, what = problem.regime.shards(problem.cluster.accelerators), "a copy of the weights"
            option = "--sharding-ranks"
        raise InfeasibleProblem(
            f"{ranks} ranks share out {what}: with {all_pins(problem)} no stage on {size} devices has a multiple "
            f"of {ranks} ranks",
            f"pin other --tp, --dp or --pp, or a smaller {option}",
        )
    if not suits:
        raise no_micro_batch(problem)


def _grids(problem: Problem, tensor: int, pipelines: int) -> Iterator[tuple[int, int]]:
    """Pipeline and data-parallel degrees of each of the pipelines, which share the devices.

    A data-parallel degree that is pinned counts the replicas of all pipelines.
    """
    pins, size = problem.pins, problem.cluster.size
    replicas, odd = divmod(pins.data_parallel or 0, pipelines)
    if odd:
        return
    if pins.pipeline and replicas:
        if tensor * pins.pipeline * replicas <= size:
            yield pins.pipeline, replicas
        return
    if size % tensor:
        return
    left = size // tensor
    for pipeline in (pins.pipeline,) if pins.pipeline else divisors(left, left):
        if left % pipeline == 0 and replicas in (0, left // pipeline):
            yield pipeline, left // pipeline


def _arrangements(
    problem: Problem, tensor: int, items: int, placements: Sequence[PlacementKind]
) -> Iterator[tuple[int, int, int, PlacementKind]]:
    """Pipeline and data-parallel degrees, stages a device, and the placement.

    Of kinds of placement that are equal for this shape only the first counts.
    """
    pinned = problem.pins.virtual_stages
    alike: set[tuple[int, int, tuple[int, ...]]] = set()
    kinds = [kind for listed in placements for kind in _KINDS.get(listed, (listed,))]
    for kind in kinds or OWN_PLACEMENTS:
        pipelines = pipelines_of_kind(kind) or 1
        for pipeline, replicas in _grids(problem, tensor, pipelines):
            for rounds in (pinned,) if pinned else range(1, (1 if pipeline == 1 else MOST_VIRTUAL) + 1):
                length = pipeline * rounds
                if length > items or (pipeline == 1 and rounds > 1):
                    continue
                try:
                    sets = sets_of_stages(kind, pipeline, length * pipelines)
                except InvalidValue:
                    continue
                apart = all(len(set(sets[stage::length])) == pipelines for stage in range(length))
                key = pipelines, replicas, sets
                if apart and key not in alike:
                    alike.add(key)
                    yield pipeline, replicas, rounds, kind


def _groups(problem: Problem, micro_batch: int, pipeline: int) -> bool:
    """Interleaved 1F1B runs micro-batches in groups of as many as there are devices in a row."""
    return (problem.mini_batch // micro_batch) % pipeline == 0
