"""A plan in the making: operators by position, device groups by size, and back to a plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pipebench.algorithms.chains.stage_row import Way, degrees, way
from pipebench.costs.sharded_stage import is_sharded
from pipebench.domain.placement import placement_kind_of
from pipebench.domain.plan import Plan, ReplicaMode, Stage
from pipebench.domain.problem import Problem
from pipebench.domain.recomputation import Recompute, RecomputePin


@dataclass(frozen=True, slots=True, eq=False)
class Manner:
    """How operators run: an `algorithms.chains.stage_row.Way`. A problem has each once, so objects are compared.

    choice: for each operator of the graph the id of an alternative, '' for the plain one.
    """

    tensor_parallel: int
    choice: tuple[str, ...]
    recompute: Recompute

    def choice_of(self, operators: tuple[int, ...]) -> tuple[str, ...]:
        """The choice of some operators (positions), empty where all are plain."""
        made = tuple(self.choice[operator] for operator in operators)
        return made if any(made) else ()


@dataclass(frozen=True, slots=True)
class Part:
    """A stage. operators: positions, in topological order. group: its device group. way: how operators run."""

    operators: tuple[int, ...]
    group: int
    way: Manner
    micro_batch: int
    replicas: ReplicaMode = "split"

    def stage(self, names: Sequence[str], devices: tuple[int, ...]) -> Stage:
        """The stage on these devices. names: of all operators of the graph."""
        replicas = len(devices) // self.way.tensor_parallel
        return Stage(
            operators=tuple(names[op] for op in self.operators),
            devices=devices,
            data_parallel=replicas,
            tensor_parallel=self.way.tensor_parallel,
            micro_batch=self.micro_batch,
            replicas=self.replicas if replicas > 1 else "split",
            choice=self.way.choice_of(self.operators),
            recompute=self.way.recompute,
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan of one pipeline.

    sizes: devices of each group; groups stand on consecutive ids. chained: order edges keep the stages in a row.
    """

    parts: tuple[Part, ...]
    sizes: tuple[int, ...]
    copies: int = 1
    routing: Literal["direct", "relay"] = "direct"
    chained: bool = False

    @property
    def devices(self) -> int:
        """Of all copies."""
        return self.copies * sum(self.sizes)

    @property
    def alike(self) -> bool:
        """Whether it has several stages, of one micro-batch size that replicas share, and sends directly."""
        size = self.parts[0].micro_batch
        each = all(part.micro_batch == size and part.replicas == "split" for part in self.parts)
        return each and len(self.parts) > 1 and self.routing == "direct"

    def hosted(self, group: int) -> list[int]:
        """The positions of the stages on a group."""
        return [position for position, part in enumerate(self.parts) if part.group == group]

    def with_part(self, position: int, part: Part) -> "Draft":
        """Another stage at that position."""
        return replace(self, parts=(*self.parts[:position], part, *self.parts[position + 1 :]))

    def in_copies(self, factor: int) -> "Draft | None":
        """So many times the copies, each with its part of every group and every micro-batch. None where one of
        these does not divide.
        """
        if any(size % factor for size in self.sizes) or any(part.micro_batch % factor for part in self.parts):
            return None
        parts = tuple(replace(part, micro_batch=part.micro_batch // factor) for part in self.parts)
        sizes = tuple(size // factor for size in self.sizes)
        return replace(self, parts=parts, sizes=sizes, copies=self.copies * factor)

    def tidy(self) -> "Draft":
        """Without groups that run nothing."""
        used = sorted({part.group for part in self.parts})
        if len(used) == len(self.sizes):
            return self
        number = {group: at for at, group in enumerate(used)}
        parts = tuple(replace(part, group=number[part.group]) for part in self.parts)
        return replace(self, parts=parts, sizes=tuple(self.sizes[group] for group in used))


class Drafting:
    """Drafts of one problem's plans, there and back. ways: how operators may run, within the pins."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._graph = problem.profile.graph
        self._names = [operator.name for operator in self._graph.operators]
        self._sync = problem.regime.mode == "sync"
        self._place = {op: at for at, op in enumerate(self._graph.topological)}
        self._manners: dict[tuple[int, tuple[str, ...], str], Manner] = {}
        self.ways = tuple(self._manner(way) for way in offered_ways(problem))

    def in_order(self, operators: Sequence[int]) -> tuple[int, ...]:
        """Positions of operators in topological order."""
        return tuple(sorted(operators, key=self._place.__getitem__))

    def possible(self, draft: Draft) -> bool:
        """Whether degrees fit groups, micro-batches divide, no stage is empty, and there are as many devices.

        Of replicas that share micro-batches each has a sample. Of those that take them in turn each has one of a
        mini-batch in sync; in async they go on with those of the next one.
        """
        if draft.devices > self.problem.cluster.size or self.problem.mini_batch % draft.copies:
            return False
        samples = self.problem.mini_batch // draft.copies
        for part in draft.parts:
            replicas, left = divmod(draft.sizes[part.group], part.way.tensor_parallel)
            if left or not part.operators or samples % part.micro_batch:
                return False
            if part.replicas == "split":
                most = part.micro_batch
            else:
                most = samples // part.micro_batch if self._sync else replicas
            if replicas > most:
                return False
        return True

    def plan_of(self, draft: Draft) -> Plan | None:
        """The plan; None for a draft that is not possible."""
        if not self.possible(draft):
            return None
        first, homes = 0, []
        for size in draft.sizes:
            homes.append(tuple(range(first, first + size)))
            first += size
        stages = [part.stage(self._names, homes[part.group]) for part in draft.parts]
        edges = tuple((at, at + 1) for at in range(len(stages) - 1)) if draft.chained else ()
        kind = placement_kind_of([stage.devices for stage in stages])
        return Plan(
            stages=tuple(stages), order_edges=edges, copies=draft.copies, routing=draft.routing, placement=kind
        )

    def draft_of(self, plan: Plan) -> Draft | None:
        """The draft of a plan; None for plans that drafts have no words for.

        These are plans of several pipelines on the same devices, of split operators, with a kFkB of k > 1, with
        clones of an operator, or of order edges that are no row.
        """
        stages = plan.stages
        held = [name for stage in stages for name in stage.operators]
        if plan.pipelines > 1 or any(is_sharded(stage) or stage.k > 1 for stage in stages):
            return None
        if len(held) != len(set(held)):
            return None
        groups: dict[tuple[int, ...], int] = {}
        for devices in sorted({tuple(sorted(stage.devices)) for stage in stages}):
            groups[devices] = len(groups)
        return Draft(
            parts=tuple(
                Part(
                    operators=self.in_order([self._graph.index[name] for name in stage.operators]),
                    group=groups[tuple(sorted(stage.devices))],
                    way=self._way_of(stage),
                    micro_batch=stage.micro_batch,
                    replicas=stage.replicas,
                )
                for stage in stages
            ),
            sizes=tuple(len(devices) for devices in groups),
            copies=plan.copies,
            routing=plan.routing,
            chained=bool(plan.order_edges),
        )

    def _manner(self, way: Way) -> Manner:
        key = way.tensor_parallel, way.choice, way.recompute
        return self._manners.setdefault(key, Manner(*key))

    def _way_of(self, stage: Stage) -> Manner:
        """The offered way that the stage's operators run in; else one with the stage's own choice in it."""
        chosen = dict(zip(stage.operators, stage.choice or ("",) * len(stage.operators), strict=True))
        alike = [
            each
            for each in self.ways
            if each.tensor_parallel == stage.tensor_parallel and each.recompute == stage.recompute
        ]
        for each in alike:
            if all(each.choice[self._graph.index[name]] == identifier for name, identifier in chosen.items()):
                return each
        base = alike[0].choice if alike else ("",) * len(self._graph.operators)
        choice = tuple(chosen.get(name, other) for name, other in zip(self._names, base, strict=True))
        return self._manner(Way(stage.tensor_parallel, choice, stage.recompute))


def offered_ways(problem: Problem) -> tuple[Way, ...]:
    """Ways to run all operators at one degree: those of the profile that the pins allow, plain ones first."""
    pins = problem.pins
    words: tuple[RecomputePin, ...] = ("none", "stage", "full", "selective")
    if pins.recompute is not None:
        words = (pins.recompute,)
    found: dict[tuple[int, tuple[str, ...], str], Way] = {}
    for degree in degrees(problem):
        if pins.tensor_parallel not in (None, degree) or degree > problem.cluster.size:
            continue
        for word in words:
            made = way(problem, degree, word)
            if made is not None:
                found.setdefault((degree, made.choice, made.recompute), made)
        if degree == 1 and "stage" in words:
            whole = Way(1, ("",) * len(problem.profile.graph.operators), "stage", "stage")
            found.setdefault((1, whole.choice, "stage"), whole)
    return tuple(found.values())
