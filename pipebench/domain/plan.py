"""Plan: stages on devices. Data edges are derived from the graph, never stored."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from pipebench.domain.errors import InvalidValue
from pipebench.domain.limits import MOST_COUNT, MOST_NS
from pipebench.domain.placement import PlacementKind
from pipebench.domain.recomputation import Recompute
from pipebench.domain.value import Value, require, require_count

ReplicaMode = Literal["split", "round_robin"]
"""How replicas share the micro-batches of their stage, see `Stage.replicas`."""


class Stage(Value, frozen=True, kw_only=True):
    """A set of operators run together.

    operators: their names.
    devices: ids; there are data_parallel x tensor_parallel of them.
    data_parallel: the number of replicas. Replica j is on the j-th tensor_parallel of the devices, as listed.
    tensor_parallel: the number of devices that run one replica together.
    micro_batch: samples of a whole micro-batch.
    replicas: `split`: the replicas share each micro-batch and work at the same time. `round_robin`: they take
    whole micro-batches in turn, number i goes to replica i mod data_parallel, forward and backward (PipeDream's
    1F1B-RR).
    k: the k of kFkB.
    in_flight: the most samples with a finished forward and an unfinished backward (0: left to the scheduler); in
    round_robin those of one replica.
    choice: for each operator the id of an alternative ('' for the plain way); empty: plain for all.
    sharding: for each operator the split of its dims; empty: nothing is split.
    recompute: with `stage` only the stage's inputs are kept and the forward is run again.
    """

    operators: tuple[str, ...]
    devices: tuple[int, ...]
    data_parallel: int = 1
    tensor_parallel: int = 1
    micro_batch: int
    replicas: ReplicaMode = "split"
    k: int = 1
    in_flight: int = 0
    choice: tuple[str, ...] = ()
    sharding: tuple[dict[str, int], ...] = ()
    recompute: Recompute = "none"

    def __post_init__(self) -> None:
        try:
            self._check_numbers()
        except TypeError:
            self._name_what_is_no_number()
            raise
        for name in ("choice", "sharding"):
            listed = len(getattr(self, name))
            require(
                listed in (0, len(self.operators)),
                f"{name} has {listed} entries for {len(self.operators)} operators",
            )

    def _check_numbers(self) -> None:
        for name in ("data_parallel", "tensor_parallel", "micro_batch", "k"):
            require_count(name, getattr(self, name))
        require(self.in_flight >= 0, f"in_flight is {self.in_flight}, it must not be negative")
        require(self.in_flight <= MOST_NS, f"in_flight is {self.in_flight}, it must be at most 2^53")
        require(
            self.in_flight % self.micro_batch == 0,
            f"in_flight is {self.in_flight}, it must be a multiple of the micro-batch {self.micro_batch}",
        )
        if min(self.devices, default=0) < 0:
            raise InvalidValue(f"devices {self.devices}: an id is negative")
        most = max(self.devices, default=0)
        require(most <= MOST_COUNT, f"devices have the id {most}, it must be at most 2^31")
        for split in self.sharding:
            for dim, parts in split.items():
                require_count(f"the split of {dim!r}", parts)

    def _name_what_is_no_number(self) -> None:
        """Raise InvalidValue for the first number that is something else, such as a text."""
        numbers: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("data_parallel", "tensor_parallel", "micro_batch", "k", "in_flight")
        }
        devices = self.devices if isinstance(self.devices, Iterable) else (self.devices,)
        numbers |= {f"devices[{at}]": device for at, device in enumerate(devices)}
        for name, number in numbers.items():
            if not hasattr(number, "__index__") and not hasattr(number, "__float__"):
                what = f"{name} is {number!r} of type {type(number).__name__}"
                raise InvalidValue(what, "give a whole number")

    @property
    def turns(self) -> int:
        """How many replicas take micro-batches in turn; 1 where all share each of them."""
        return self.data_parallel if self.replicas == "round_robin" else 1

    @property
    def sharers(self) -> int:
        """How many replicas share each micro-batch."""
        return self.data_parallel // self.turns

    @property
    def device_sets(self) -> tuple[tuple[int, ...], ...]:
        """The devices that work together, a set for each turn: micro-batch i is on set i mod `turns`."""
        if self.turns == 1:
            return (self.devices,)
        each = self.tensor_parallel
        return tuple(self.devices[first : first + each] for first in range(0, len(self.devices), each))

    def devices_of(self, micro_batch: int) -> tuple[int, ...]:
        """The devices that run a micro-batch, by its number."""
        return self.device_sets[micro_batch % self.turns]


class Plan(Value, frozen=True, kw_only=True):
    """Stages, extra precedences, placement, pipelines, copies.

    stages: sets of operators on devices. Every operator is in one (in one of each pipeline; a constant may be in
    several).
    order_edges: pairs of stage positions (before, after) without bytes, each once. Some systems impose an order
    between stages that exchange nothing.
    copies: the whole pipeline is repeated so many times side by side. The stages name the devices of the first
    copy; copy c uses these ids plus c times their number.
    routing: with `direct` a tensor goes from its producer to each consuming stage. With `relay` the stages form a
    chain in the order listed, and a tensor passes through every stage between.
    placement: how the stages, as listed, stand on device sets (domain.placement).
    pipelines: the stages are so many whole pipelines of equal length, one after the other in the list, on the same
    device sets. (Pipelines on device sets of their own are copies.)

    Stages at one position hold the same operators, each on another set and with weights of its own. The mini-batch
    is split evenly over copies x pipelines, and each pipeline numbers its micro-batches from 0. At the update the
    gradients of the stages at one position are reduced together. No order edge connects two pipelines.
    """

    stages: tuple[Stage, ...]
    order_edges: tuple[tuple[int, int], ...] = ()
    copies: int = 1
    routing: Literal["direct", "relay"] = "direct"
    placement: PlacementKind = "apart"
    pipelines: int = 1

    def __post_init__(self) -> None:
        require_count("copies", self.copies)
        require_count("pipelines", self.pipelines)
        require(len(self.stages) > 0, "a plan needs at least one stage")
        require(
            len(self.stages) % self.pipelines == 0,
            f"{len(self.stages)} stages are no {self.pipelines} pipelines of as many stages each",
        )
        for before, after in self.order_edges:
            require(
                0 <= before < len(self.stages) and 0 <= after < len(self.stages),
                f"order edge ({before}, {after}) names a stage that is not there",
            )
            require(
                before // self.pipeline_length == after // self.pipeline_length,
                f"order edge ({before}, {after}) leads from one pipeline to another",
            )
        if len(set(self.order_edges)) < len(self.order_edges):
            before, after = next(edge for edge, count in Counter(self.order_edges).items() if count > 1)
            raise InvalidValue(f"order edge ({before}, {after}) stands twice")

    def identity_content(self) -> Any:
        """As in plans of before placements, which said only whether stages share devices; ids say the rest."""
        content = super().identity_content()
        content["shared_devices"] = content.pop("placement") != "apart"
        if self.pipelines == 1:
            del content["pipelines"]
        for stage in content["stages"]:
            if stage["replicas"] == "split":
                del stage["replicas"]
        return content

    @property
    def copy_size(self) -> int:
        """Number of distinct devices in one copy, by which the ids of the next one are shifted."""
        return len({device for stage in self.stages for device in stage.devices})

    @property
    def devices_used(self) -> int:
        """Number of distinct devices in all copies."""
        return self.copies * self.copy_size

    @property
    def pipeline_length(self) -> int:
        """Stages of one pipeline."""
        return len(self.stages) // self.pipelines

    @property
    def takes_turns(self) -> bool:
        """Whether replicas of a stage take micro-batches in turn."""
        return any(stage.turns > 1 for stage in self.stages)

    @property
    def all_pipelines(self) -> int:
        """Number of pipelines in all copies; they share the mini-batch."""
        return self.copies * self.pipelines

    def without_in_flight(self) -> "Plan":
        """The same stages; how many micro-batches are in flight is left to the scheduler."""
        return self.with_in_flight([0] * len(self.stages))

    def with_in_flight(self, samples: Sequence[int]) -> "Plan":
        """The same plan with so many samples in flight, by stage."""
        stages = zip(self.stages, samples, strict=True)
        return replace(self, stages=tuple(replace(stage, in_flight=number) for stage, number in stages))

    def pipeline_of(self, position: int) -> range:
        """The positions of all stages in the pipeline of the stage at `position`."""
        first = position - position % self.pipeline_length
        return range(first, first + self.pipeline_length)

    def mirrors(self, position: int) -> range:
        """The positions of the stages with the same operators, one in each pipeline, `position` included."""
        return range(position % self.pipeline_length, len(self.stages), self.pipeline_length)
