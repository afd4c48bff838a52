"""Problem: profile, cluster, mini-batch, regime and pins. The whole input of a planner."""

from functools import cached_property
from math import gcd, isqrt
from typing import Any, Literal

from msgspec import UNSET, UnsetType
from msgspec.structs import fields, force_setattr, replace

from pipebench.domain.cluster import Cluster
from pipebench.domain.errors import InvalidValue, nearest_numbers
from pipebench.domain.framework import StepCosts
from pipebench.domain.profile import Precision, Profile, Provenance
from pipebench.domain.recomputation import RecomputePin, require_offered
from pipebench.domain.value import Value, digest, require, require_count

RegimeMode = Literal["sync", "async"]
Optimizer = Literal["adam", "sgd", "none"]
OptimizerSharding = Literal["none", "zero1", "zero3"]
FIRST_FIELDS = (
    {"profile", "cluster", "mini_batch", "regime", "pins"}
    | {"mode", "precision", "gradient_precision", "optimizer", "optimizer_sharding"}
    | {"tensor_parallel", "data_parallel", "pipeline", "virtual_stages", "micro_batch", "recompute", "reserve"}
)
"""Fields of a problem, its regime and its pins that every id covers. A field that joins them later is covered only
where it is not at its default, so that problems of older stores keep their ids."""


class Regime(Value, frozen=True, kw_only=True):
    """How weights are updated.

    mode: `sync` flushes at each update and holds 1 weight version + 1 gradient. `async` stashes weights, never
    flushes and holds 2 + 1.
    precision: of weights and activations; it is the profile's.
    gradient_precision: precision of the accumulated gradients; None: that of the weights.
    optimizer: state for each weight element: adam 8 bytes, sgd (momentum) 4, none 0; below fp32 another 4 for the
    master copy.
    optimizer_sharding: with `zero1` the replicas of a stage share this state (Rajbhandari et al. 2020, section 5).
    With `zero3`, fully sharded data parallelism, they share weights and gradients as well: each micro-batch
    gathers the weights of the operators that run, and scatters their gradients, beside the computation.
    step: what a framework's step costs around the kernels; None: gradients are reduced by one ring, the update
    itself is free. It counts in sync; no framework of the table runs pipelines without a flush.
    expert_parallel: ranks of a stage that share out the experts of each layer, tensor-parallel ones among them: a
    rank holds one part of the experts, all else as without it. Not there: 1, each tensor-parallel group holds them
    all. The figures of the profile are those of one rank.
    context_parallel: ranks that share out the sequence of each sample (Liu et al. 2023, Ring Attention). A device
    of the cluster stands for so many (`Cluster.ranks`): each holds the same weights, and has one part of what is
    computed, kept and sent. Not there: 1. The figures of the profile are those of one rank.
    sharding_ranks: ranks among which a copy of what `optimizer_sharding` names is shared out: hybrid sharding
    (Zhao et al. 2023, PyTorch FSDP, section 3.2.2). Those that hold the same weights make whole groups of so many,
    each with a copy; fewer make one group. Not there: all of them are one.
    """

    mode: RegimeMode
    precision: Precision = "fp32"
    gradient_precision: Precision | None = None
    optimizer: Optimizer = "none"
    optimizer_sharding: OptimizerSharding = "none"
    step: StepCosts | None = None
    expert_parallel: int | UnsetType = UNSET
    context_parallel: int | UnsetType = UNSET
    sharding_ranks: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        for name in ("expert_parallel", "context_parallel"):
            ranks = getattr(self, name)
            if ranks is UNSET:
                continue
            require_count(name, ranks)
            if ranks == 1:
                force_setattr(self, name, UNSET)
        if self.sharding_ranks is not UNSET:
            self._require_groups(self.sharding_ranks)

    def _require_groups(self, ranks: int) -> None:
        field = "sharding_ranks"
        require_count(field, ranks)
        if not self.shards_optimizer:
            raise InvalidValue(
                f"sharding_ranks is {ranks}, and nothing is shared out: optimizer_sharding is none",
                "say --optimizer-sharding zero1 or zero3",
                field=field,
            )
        require(
            self.expert_ranks == 1,
            f"sharding_ranks is {ranks}, and {self.expert_ranks} ranks share out experts: the suite prices one of "
            "both",
            field,
        )
        require(
            ranks % self.context_ranks == 0,
            f"sharding_ranks is {ranks}, it must be a multiple of the {self.context_ranks} ranks that share out a "
            "sequence, which hold the same weights",
            field,
        )

    @property
    def expert_ranks(self) -> int:
        """How many ranks share out the experts of a layer."""
        return 1 if self.expert_parallel is UNSET else self.expert_parallel

    @property
    def context_ranks(self) -> int:
        """How many ranks share out the sequence of each sample."""
        return 1 if self.context_parallel is UNSET else self.context_parallel

    def shares_experts_over(self, data_parallel: int, tensor_parallel: int) -> bool:
        """Whether the ranks of a stage of these degrees make whole groups of those that share out experts. Ranks
        that share out sequences are among them.
        """
        return data_parallel * tensor_parallel * self.context_ranks % self.expert_ranks == 0

    def shards(self, ranks: int) -> int:
        """Among how many ranks a copy is shared out where so many hold the same weights."""
        return ranks if self.sharding_ranks is UNSET else min(ranks, self.sharding_ranks)

    def shards_evenly(self, replicas: int) -> bool:
        """Whether the ranks of so many replicas make whole groups, or one."""
        ranks = replicas * self.context_ranks
        return ranks % self.shards(ranks) == 0

    @property
    def shards_in_groups(self) -> bool:
        """Whether ranks that hold the same weights may be groups that hold a copy each."""
        return self.sharding_ranks is not UNSET

    @property
    def shards_optimizer(self) -> bool:
        """Whether the replicas of a stage share the optimizer's state."""
        return self.optimizer_sharding != "none"

    @property
    def shards_weights(self) -> bool:
        """Whether they share weights and gradients as well."""
        return self.optimizer_sharding == "zero3"

    @property
    def spreads_rings(self) -> bool:
        """Whether a collective leaves a node over the network links of all its members there."""
        return self.step is not None and self.step.spreads_rings


class Pins(Value, frozen=True, kw_only=True):
    """What the user fixed.

    None leaves the choice to the planner. A planner honours a pin or answers `unsupported`.

    tensor_parallel: devices that each stage splits its operators over.
    data_parallel: replicas of each stage.
    pipeline: number of stages that follow each other.
    virtual_stages: number of stages on each device.
    micro_batch: samples that pass through a stage together, over all replicas.
    micro_batch_size: samples that one replica of a stage runs at once, as frameworks count: its share where
    replicas split a micro-batch, all of it where they take micro-batches in turn.
    recompute: of each stage as a whole, or of each layer (domain.recomputation).
    reserve: share of device memory to keep free; a plan that uses it is `tight`.
    """

    tensor_parallel: int | None = None
    data_parallel: int | None = None
    pipeline: int | None = None
    virtual_stages: int | None = None
    micro_batch: int | None = None
    recompute: RecomputePin | None = None
    reserve: float = 0.0
    micro_batch_size: int | None = None

    def __post_init__(self) -> None:
        counts = (
            "tensor_parallel",
            "data_parallel",
            "pipeline",
            "virtual_stages",
            "micro_batch",
            "micro_batch_size",
        )
        for name in counts:
            pinned = getattr(self, name)
            if pinned is not None:
                require_count(f"pin {name}", pinned)
        require(0.0 <= self.reserve < 1.0, f"reserve is {self.reserve}, it must be in [0, 1)")
        total, each, replicas = self.micro_batch, self.micro_batch_size, self.data_parallel
        if total is not None and each is not None:
            sharers = f"of {replicas} replicas" if replicas else "a number of replicas"
            require(
                total % each == 0 and (replicas or 0) % (total // each) == 0,
                f"the pinned micro-batch {total} is not the micro-batch size {each} times {sharers} that share it",
            )


class Problem(Value, frozen=True, kw_only=True):
    """Profile x Cluster x mini-batch x Regime x pins.

    profile: the operators and what they cost.
    cluster: the devices and the links between them.
    mini_batch: samples for one weight update.
    regime: how weights are updated.
    pins: what the user fixed.
    overlap: the share of the shorter task that is hidden where a lane runs a forward and a backward at once, in
    [0, 1]. With 0 a pair takes as long as both tasks one after the other.

    problem_id is the hash of its content; workload_id is the same without the regime.
    """

    profile: Profile
    cluster: Cluster
    mini_batch: int
    regime: Regime
    pins: Pins = Pins()
    overlap: float = 0.0

    def __post_init__(self) -> None:
        require_count("mini_batch", self.mini_batch)
        require(0.0 <= self.overlap <= 1.0, f"overlap is {self.overlap}, it must be in [0, 1]")
        require(
            self.regime.precision == self.profile.precision,
            f"the regime asks for {self.regime.precision}, "
            f"profile {self.profile.name!r} is {self.profile.precision}",
        )
        for name in dict.fromkeys(self.cluster.devices):
            self.profile.on(name)
        shared, ranks = any(self.profile.graph.expert_weight_bytes), self.regime.expert_ranks
        if ranks > 1 and not shared:
            raise InvalidValue(
                f"expert_parallel is {ranks}, profile {self.profile.name!r} has no experts that ranks share out",
                "leave --ep out, or give the model in place of its profile, with a profiler that knows experts",
            )
        require(
            ranks > 1 or not shared,
            f"profile {self.profile.name!r} is of experts that ranks share out, the regime says of no such ranks",
        )
        self._require_ranks_of_a_sequence()
        self._require_whole_groups()
        require_offered(
            self.pins.recompute,
            self.profile.graph,
            [self.profile.on(name) for name in dict.fromkeys(self.cluster.devices)],
            self.profile.name,
        )
        for what, pinned in (
            ("micro-batch", self.pins.micro_batch),
            ("micro-batch size", self.pins.micro_batch_size),
        ):
            if pinned is None or self.mini_batch % pinned == 0:
                continue
            why = "is larger than" if pinned > self.mini_batch else "does not divide"
            raise InvalidValue(
                f"the pinned {what} {pinned} {why} the mini-batch {self.mini_batch}",
                f"the nearest that divide it: {nearest_numbers(pinned, _divisors(self.mini_batch))}",
            )

    def _require_whole_groups(self) -> None:
        """Raise InvalidValue for pinned replicas that make no whole groups of `Regime.sharding_ranks`."""
        replicas, ranks = self.pins.data_parallel, self.regime.context_ranks
        if replicas is None or self.regime.shards_evenly(replicas):
            return
        holders = replicas * ranks
        each = self.regime.shards(holders)
        common = gcd(holders, each)
        raise InvalidValue(
            f"the pinned data_parallel {replicas}{f' x {ranks} ranks a sequence' if ranks > 1 else ''} is no "
            f"multiple of {each}, the ranks that share out a copy (sharding_ranks)",
            f"--dp {holders // each * each // ranks}" + (f", or --sharding-ranks {common}" if common > 1 else ""),
        )

    def _require_ranks_of_a_sequence(self) -> None:
        """Raise InvalidValue where profile, cluster and regime do not say the same of context parallelism."""
        ranks, of_profile = self.regime.context_ranks, self.profile.graph.context_ranks
        if of_profile != ranks:
            raise InvalidValue(
                f"context_parallel is {ranks}, profile {self.profile.name!r} is of "
                + (f"{of_profile} ranks that share a sequence" if of_profile > 1 else "whole sequences"),
                "leave --cp out, or give a language model in place of its profile, with a profiler that knows it",
            )
        require(
            self.cluster.rank_count == ranks,
            f"context_parallel is {ranks}, a device of cluster {self.cluster.name!r} stands for "
            f"{self.cluster.rank_count} ranks",
        )

    @cached_property
    def problem_id(self) -> str:
        """Hash of the content without provenance: equal figures are the same problem, whoever measured them."""
        return digest((_hashed_fields(self.regime), self.workload_id))

    @cached_property
    def workload_id(self) -> str:
        """Hash of the content without the regime."""
        figures = replace(self.profile, provenance=Provenance())
        content = (figures, self.cluster, self.mini_batch, _hashed_fields(self.pins))
        later = {name: each for name, each in _hashed_fields(self).items() if name not in FIRST_FIELDS}
        return digest((*content, later) if later else content)


def _divisors(number: int) -> set[int]:
    low = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    return {*low, *(number // each for each in low)}


def _hashed_fields(value: Value) -> dict[str, Any]:
    """The fields that an id covers."""
    return {
        field.name: each
        for field in fields(value)
        if (each := getattr(value, field.name)) != field.default or field.name in FIRST_FIELDS
    }
