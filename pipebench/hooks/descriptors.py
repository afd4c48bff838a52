"""What a plugin yields: frozen descriptions. To list components imports no algorithm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pipebench.defaults import schedulers
from pipebench.domain.placement import PlacementKind
from pipebench.domain.plan import ReplicaMode
from pipebench.domain.problem import RegimeMode
from pipebench.domain.value import Value
from pipebench.hooks.originals import Original

Fidelity = Literal["code-checked", "paper", "reconstructed", "improved", ""]
Graphs = Literal["chain", "dag"]


class NoOptions(Value, frozen=True, kw_only=True):
    """A component without options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a planner can express and needs. regimes: those it plans for, its own one first.

    round_robin: whether replicas of its plans take micro-batches in turn (Stage.replicas).
    expert_parallel: whether it knows what stages cost whose ranks share out experts (`Regime.expert_parallel`).
    context_parallel: whether it knows that stages of one replica reduce gradients and share out state too, where
    ranks share out sequences (`Regime.context_parallel`; `Formula` and `CostModel` count it).
    sharding_groups: whether its replicas make whole groups of those that share out a copy of weights or state
    (`Regime.sharding_ranks`). A planner without replicas need not say.
    The host asks no other planner for such problems.
    """

    graphs: Graphs = "dag"
    regimes: tuple[RegimeMode, ...] = ("sync",)
    replicas: bool = False
    tensor_parallel: bool = False
    recompute: bool = False
    non_contiguous: bool = False
    per_stage_micro_batch: bool = False
    round_robin: bool = False
    expert_parallel: bool = False
    context_parallel: bool = False
    sharding_groups: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCapabilities:
    """What a scheduler can order: `finite` for one mini-batch (sync), `periodic` a repeating pattern (async).

    placements: the placements that its plans may have. With `mirrored` it takes plans that hold the weights of an
    operator in two places.
    pairs: whether its schedules may run a forward and a backward at once.
    replicas: how replicas share micro-batches in the plans that it takes (Stage.replicas); a plan is `round_robin`
    where those of any stage take turns.
    named_only: whether it runs only where the user or a planner names it. The suite tries all others on each plan;
    a scheduler that takes long, or whose answer depends on the time that it has, is not for that.
    shared_devices: deprecated; true adds the placement `listed`.
    """

    produces: Literal["finite", "periodic"] = "finite"
    stage_graphs: Graphs = "dag"
    shared_devices: bool = False
    per_stage_micro_batch: bool = False
    placements: tuple[PlacementKind, ...] = ("apart",)
    pairs: bool = False
    replicas: tuple[ReplicaMode, ...] = ("split",)
    named_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorCapabilities:
    """What an executor can run and how it is started.

    placements: the placements that its plans may have. `listed` means any placement of one pipeline. With
    `mirrored` it runs plans that hold the weights of an operator in two places.
    pairs: whether it runs a forward and a backward at once where a schedule asks for it.
    round_robin: whether it runs plans whose replicas take micro-batches in turn.
    shared_devices: deprecated; false means that `apart` is the only placement.
    """

    schedules: tuple[Literal["finite", "periodic"], ...] = ("finite", "periodic")
    stage_graphs: Graphs = "dag"
    shared_devices: bool = True
    replicas: bool = True
    launch: Literal["in-process", "processes"] = "in-process"
    placements: tuple[PlacementKind, ...] = ("listed",)
    pairs: bool = False
    round_robin: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A named thing that a plugin offers in one slot.

    load: "package.module:attribute" of the callable that does the work.
    options: a Value class with a default for every field.
    reference: what to cite.
    deviations: every difference from the reference.
    calls: names of planners and schedulers that it asks its context for, without options in brackets. Its rows
    depend on their code, and the context refuses all others.
    paths: names of options that name files of the user. Where one is given, the component works in the user's
    folder, which it may read; else in an empty folder of its own. Rows depend on what is in the file; of a folder
    that is named, and of what a file names in turn, nothing is known.
    """

    name: str
    summary: str
    load: str
    options: type[Value] = NoOptions
    reference: str = ""
    deviations: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def names_files(self, options: Value) -> bool:
        """Whether these options of it name a file of the user."""
        return any(getattr(options, name, "") for name in self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner(Component):
    """plan(problem, context) -> PlanResult. default_scheduler: by regime; a schedule of its own wins.

    kernels: "package.module:attribute" of a function without arguments that compiles kernels which tiny problems
    do not reach. It is called before the clock of a search runs, and knows no problem. Several functions, with
    commas between, compile their parts side by side.
    original: the program that its authors published, for `pipebench originals`.
    """

    capabilities: Capabilities = field(default_factory=Capabilities)
    fidelity: Fidelity = ""
    kernels: str = ""
    default_scheduler: Mapping[RegimeMode, str] = field(default_factory=schedulers)
    original: Original | None = None

    @property
    def kernel_parts(self) -> tuple[str, ...]:
        """The functions that compile kernels."""
        return tuple(self.kernels.split(",")) if self.kernels else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler(Component):
    """schedule(problem, plan, context) -> Schedule."""

    capabilities: ScheduleCapabilities = field(default_factory=ScheduleCapabilities)


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor(Component):
    """execute(problem, plan, schedule, context) -> Trace.

    network: whether it needs the network of the machine, as processes that talk to each other do. It then also
    manages its memory itself.
    variables: environment variables that it needs beside the usual ones: names, or prefixes that end with `*`.
    writes: folders outside its own in which it keeps files, such as "~/.cache" or "$HF_HOME".
    """

    capabilities: ExecutorCapabilities = field(default_factory=ExecutorCapabilities)
    network: bool = False
    variables: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiler(Component):
    """profile(graph, context) -> Profile; context.request says for which devices and sizes.

    links: "package.module:attribute" of links(context) -> Cluster, for a profiler that measures links between
    devices.
    captures: whether it captures models itself. For such a model graph is None and context.request.model names it.
    devices: "package.module:attribute" of devices(options) -> names of the device types that it measures without
    an entry in the device table. The first is the default; no names: only types of the table. Empty: cpu by
    default, plus any type.
    network, variables, writes: as of an executor.
    """

    captures: bool = False
    links: str = ""
    devices: str = ""
    network: bool = False
    variables: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Component):
    """build(context) -> OperatorGraph; the parameters of the model are its options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(Component):
    """read(data, context) -> Profile, for files whose name ends with one of `suffixes`.

    data: the bytes of the file. context.request is its path, for messages.
    """

    suffixes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact(Component):
    """() -> hooks.reproduction.Reproduction. name: the paper's short name and the figure, as in madpipe/fig6.

    paper: title and authors, for the head of a report; `reference` is what to cite.
    """

    paper: str = ""


SLOTS: dict[str, type[Component]] = {
    "planners": Planner,
    "schedulers": Scheduler,
    "executors": Executor,
    "profilers": Profiler,
    "models": Model,
    "formats": Format,
    "artefacts": Artefact,
}
"""Slot name to the descriptor that its hook yields; the hook is `pipebench_` + slot."""


def slot_of(component: Component) -> str:
    """The slot of a descriptor."""
    return next(slot for slot, kind in SLOTS.items() if isinstance(component, kind))
