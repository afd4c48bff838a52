"""A plan as training frameworks see it: stages in a row, the same degrees on all, equal numbers a rank."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from msgspec import UNSET

from pipebench.costs.placement import lanes_of
from pipebench.costs.shapes.transformer import EMBEDDING, HEAD, OVERLAPPED, SEQUENCE_SPLIT
from pipebench.domain.framework import RecomputeModule
from pipebench.domain.graph import Operator, OperatorGraph
from pipebench.domain.placement import PlacementKind, stands_as
from pipebench.domain.plan import Plan, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.profile import NarrowPrecision
from pipebench.domain.recomputation import RecomputePin, Repeated, repeated
from pipebench.formats.frameworks.requirements import CannotExpress, narrow_products, require_plain_products


@dataclass(frozen=True)
class Arrangement:
    """stages: positions of their operators in topological order; stage k follows stage k - 1.

    rank_of: for each stage its rank, numbered by first appearance. micro_batch: samples of one replica.
    recompute: what all stages or layers do (domain.recomputation). sequence_parallel: activations outside the
    products are split over the tensor-parallel group. tensor_overlap: products run beside its collectives.
    """

    problem: Problem
    plan: Plan
    stages: tuple[tuple[int, ...], ...]
    rank_of: tuple[int, ...]
    tensor_parallel: int
    data_parallel: int
    micro_batch: int
    recompute: RecomputePin
    sequence_parallel: bool
    tensor_overlap: bool = False

    @property
    def graph(self) -> OperatorGraph:
        """The model's graph."""
        return self.problem.profile.graph

    @property
    def pipeline(self) -> int:
        """Ranks in a row."""
        return max(self.rank_of) + 1

    @property
    def virtual(self) -> int:
        """Stages a rank."""
        return len(self.stages) // self.pipeline

    @property
    def devices(self) -> int:
        """Devices of all ranks and replicas."""
        return self.pipeline * self.tensor_parallel * self.data_parallel * self.context_ranks

    @property
    def context_ranks(self) -> int:
        """Ranks that share out the sequence of each sample, 1 where each has whole ones."""
        return self.problem.regime.context_ranks

    @property
    def holders(self) -> int:
        """Ranks that hold the same weights: replicas, times those that share out the sequences of each."""
        return self.data_parallel * self.context_ranks

    @property
    def rounds(self) -> int:
        """Micro-batches of each replica for one weight update."""
        return self.problem.mini_batch // (self.micro_batch * self.data_parallel)

    @property
    def shares_embedding(self) -> bool:
        """Whether embedding and head share a table."""
        return shares_embedding(self.graph)

    @property
    def shards_optimizer(self) -> bool:
        """Whether replicas share out the optimizer state and nothing else (ZeRO-1)."""
        regime = self.problem.regime
        return self.holders > 1 and regime.shards_optimizer and not regime.shards_weights

    @property
    def shards_weights(self) -> bool:
        """Whether replicas share out weights and gradients as well (ZeRO-3)."""
        return self.holders > 1 and self.problem.regime.shards_weights

    @property
    def copies(self) -> int:
        """Groups of ranks that share out a copy each, of weights or of the optimizer's state; 1 where none do."""
        return self.holders // self.problem.regime.shards(self.holders)

    @property
    def products(self) -> NarrowPrecision | None:
        """The precision of the layers' products, None where it is that of the weights."""
        return narrow_products(self.problem)

    @property
    def unfused(self) -> bool:
        """Whether attention was priced as kernels of its own, with the scores in memory."""
        return self.problem.profile.provenance.attention in ("unfused", "selective")

    @property
    def modules(self) -> tuple[RecomputeModule, ...]:
        """What runs again in each layer, where that is neither all of it nor attention's core alone."""
        told = self.problem.profile.provenance.modules
        return () if self.recompute != "selective" or told is UNSET else told

    def require_plain_products(self) -> None:
        """Raises CannotExpress where products run beside the collectives that they wait for, or in fewer bits."""
        if self.tensor_overlap:
            raise CannotExpress("products run beside the collectives of tensor parallelism (tensor_overlap=on)")
        require_plain_products(self.problem)

    @property
    def expert_ranks(self) -> int:
        """Ranks that share out the experts of a layer, 1 where none do."""
        return self.problem.regime.expert_ranks

    @cached_property
    def operators(self) -> tuple[tuple[Operator, ...], ...]:
        """The operators of each stage."""
        return tuple(tuple(self.graph.operators[op] for op in stage) for stage in self.stages)

    def stands(self, placement: PlacementKind) -> bool:
        """Whether the stages, in the order of execution, are placed so."""
        return stands_as(placement, [(rank,) for rank in self.rank_of])


def shares_embedding(graph: OperatorGraph) -> bool:
    """Whether embedding and head share a table."""
    tables = [set(op.parameters) for op in graph.operators if op.kind in (EMBEDDING, HEAD)]
    return len(tables) > 1 and bool(set.intersection(*tables))


def arrange(problem: Problem, plan: Plan, inside_layers: bool = False) -> Arrangement:
    """The plan in that form. inside_layers: stages may cut a layer. Raises CannotExpress with the reason."""
    if plan.pipelines > 1:
        raise CannotExpress(f"{plan.pipelines} pipelines over the same devices, each with weights of its own")
    if plan.takes_turns:
        raise CannotExpress("replicas that take micro-batches in turn; here they share each micro-batch")
    shared = _same(plan)
    graph = problem.profile.graph
    place = {op: turn for turn, op in enumerate(graph.topological)}
    contents = [
        sorted((graph.index[name] for name in stage.operators), key=place.__getitem__) for stage in plan.stages
    ]
    order = sorted(range(len(contents)), key=lambda position: place[contents[position][0]])
    flat = [op for position in order for op in contents[position]]
    if flat != list(graph.topological):
        raise CannotExpress("a stage is not contiguous: operators of other stages lie between its own")
    if not inside_layers:
        _whole_layers(graph, [contents[position] for position in order])
    _, lane_of = lanes_of(plan)
    numbers: dict[int, int] = {}
    rank_of = tuple(numbers.setdefault(lane_of[position], len(numbers)) for position in order)
    counts = Counter(rank_of)
    if len(set(counts.values())) > 1:
        raise CannotExpress(
            f"unequal stages per rank: {', '.join(f'rank {r} has {n}' for r, n in sorted(counts.items()))}"
        )
    again, sequence, overlap = _ways(problem, plan)
    replicas = shared.data_parallel * plan.copies
    if shared.micro_batch % shared.data_parallel:
        raise CannotExpress(f"{shared.data_parallel} replicas do not divide the micro-batch {shared.micro_batch}")
    return Arrangement(
        problem=problem,
        plan=plan,
        stages=tuple(tuple(contents[position]) for position in order),
        rank_of=rank_of,
        tensor_parallel=shared.tensor_parallel,
        data_parallel=replicas,
        micro_batch=shared.micro_batch // shared.data_parallel,
        recompute=again,
        sequence_parallel=sequence,
        tensor_overlap=overlap,
    )


def _same(plan: Plan) -> Stage:
    """The first stage, whose degrees all have. Raises CannotExpress for the first that differs."""
    first = plan.stages[0]
    for name, what in (
        ("data_parallel", "replicas per stage"),
        ("tensor_parallel", "tensor-parallel degrees per stage"),
        ("micro_batch", "micro-batches per stage"),
    ):
        for position, stage in enumerate(plan.stages):
            mine, other = getattr(first, name), getattr(stage, name)
            if mine != other:
                raise CannotExpress(f"{what} differ: stage 0 has {mine}, stage {position} has {other}")
    return first


def _whole_layers(graph: OperatorGraph, contents: list[list[int]]) -> None:
    holder: dict[int, int] = {}
    for position, operators in enumerate(contents):
        for op in operators:
            layer = graph.operators[op].layer
            if layer is not None and holder.setdefault(layer, position) != position:
                raise CannotExpress(
                    f"a cut inside layer {layer}: stages {holder[layer]} and {position} both hold operators of it"
                )


def _ways(problem: Problem, plan: Plan) -> tuple[RecomputePin, bool, bool]:
    """How the plan recomputes, whether it splits sequences and overlaps tensor parallelism, from its stages and
    alternatives.

    Where operators are layers, the others (embedding, head) do not count.
    """
    graph = problem.profile.graph
    layered = any(operator.layer is not None for operator in graph.operators)
    whole = {stage.recompute for stage in plan.stages}
    again: set[Repeated] = set()
    sequence: set[bool] = set()
    overlap: set[bool] = set()
    for stage in plan.stages:
        costs = problem.profile.on(problem.cluster.devices[stage.devices[0]]).operators
        for name, identifier in zip(stage.operators, stage.choice or ("",) * len(stage.operators), strict=True):
            offered = costs[graph.index[name]].alternatives
            counts = graph.operators[graph.index[name]].layer is not None or not layered
            if counts and any(alternative.recompute for alternative in offered):
                again.add(repeated(next((a for a in offered if a.id == identifier), None)))
            if identifier and stage.tensor_parallel > 1:
                sequence.add(SEQUENCE_SPLIT in identifier)
                overlap.add(OVERLAPPED in identifier)
    if len(whole) > 1 or len(again) > 1:
        raise CannotExpress(
            "some stages or layers recompute and others do not", "plan with --recompute full or none"
        )
    recompute: RecomputePin = "stage" if "stage" in whole else again.pop() if again else "none"
    return recompute, sequence == {True}, overlap == {True}
