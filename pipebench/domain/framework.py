"""Framework: what a training framework does around the kernels of a step. StepCosts: its costs in a problem."""

from typing import Literal

from msgspec import UNSET, UnsetType

from pipebench.domain.limits import MOST_SECONDS
from pipebench.domain.value import Value, require, require_name, short

Attention = Literal["flash", "unfused", "selective"]
"""`flash`: one kernel, no scores in memory. `unfused`: products, softmax and dropout as kernels of their own.
`selective`: the same, and the backward runs attention's core again (Korthikanti et al. 2022, section 5)."""


Checkpoints = Literal["core", "products"]
"""What selective checkpointing does. `core`: attention's core runs again, the rest of a layer is kept. `products`:
the results of every second product and of attention are kept, the rest of a layer runs again."""

RecomputeModule = Literal["core_attn", "moe_act", "layernorm", "mla_up_proj", "mlp", "moe", "shared_experts"]
"""What of a layer runs again under selective checkpointing, in Megatron-LM's words (`--recompute-modules`).

core_attn: the core of attention. moe_act: the activation of the experts. layernorm: norms that are no part of a
product: that before latent attention, and that before experts. mla_up_proj: of latent attention the products up,
the norms before them and the rotation. mlp: a feed-forward part that is not of experts. moe: one of experts,
exchanges and all. shared_experts: the expert that all tokens pass.
"""

Elementwise = Literal["fused", "eager"]
"""What norms, rotations, activations and residuals are. `fused`: a kernel each, written so or made by a compiler.
`eager`: one for each operation, as PyTorch launches them; norms and rotations compute in fp32."""

ExpertProducts = Literal["grouped", "each"]
"""How products of several experts run. `grouped`: one launch for all of them. `each`: one after the other."""

ContextExchange = Literal["ring", "gather"]
"""How keys and values reach ranks that share out sequences. `ring`: from rank to rank beside each step of
attention's core. `gather`: all of them beside the first step."""


class Framework(Value, frozen=True, kw_only=True):
    """Facts about a training framework. Each is the framework's, never a model's or a device's.

    name: what `--framework` calls it.
    launch_s: seconds of the host for each kernel that eager code launches, the framework's own Python included.
    checkpoint_s, rerun_s: seconds of the host around a layer whose forward is run again: in the forward its input
    and the random states are kept, in the backward these are set and the graph is built anew.
    skew_s: seconds for each further rank by which hosts reach an all-reduce apart from each other.
    attention: how attention runs where nobody says so.
    flash_generation: of the FlashAttention whose kernels it runs where attention is fused.
    selective: what its selective checkpointing keeps and runs again.
    modules: whether it can be told which modules of a layer run again (`RecomputeModule`).
    selective_launches: launches that each kernel of a layer takes of the host where selective checkpointing
    decides for each operator, in Python, whether its result is kept.
    elementwise: what the kernels between the products of a layer are.
    repeats_keys: whether keys and values are written, and kept, once for each head of queries that reads them.
    sequence_parallel: whether norms and residuals are split over the tensor-parallel ranks.
    tensor_overlap: whether products run in parts beside the collectives of tensor parallelism that they wait for.
    splits_messages: whether each tensor-parallel rank sends its share of what crosses between stages.
    keeps_narrow: whether products in fewer bits keep their inputs for the backward in as many, or in those of the
    weights.
    optimizer_bytes: moved for each weight element by an Adam step: state, master copy and weight.
    gradient_passes: how often a step goes over the gradients: unscale, norm, clip, step, clear.
    reduce_overlap: share of the all-reduce of gradients that is hidden behind the backward.
    accumulate_bytes: moved for each weight element when a micro-batch's gradient is added to the earlier ones.
    loss_bytes: moved for each fp32 logit by the loss, forward and backward together.
    logit_bytes: held for each logit of a micro-batch while its loss is computed, the gradient included.
    split_logit_bytes: the same where tensor-parallel ranks share out the vocabulary.
    keeps_gathered: whether what a layer's first products read is kept with the whole sequence by each rank, or
    gathered again in the backward.
    context_bytes: of device memory before the first tensor: context, libraries, communicators.
    slack: share of the tensors' bytes that the allocator holds besides.
    experts: how the products of a layer's experts run where ranks share the experts out; None: it is not known how
    the framework does that.
    context: how keys and values reach ranks that share out sequences; None: it is not known, or they do not share.
    sources: where the facts come from.
    """

    name: str
    launch_s: float
    checkpoint_s: float = 0.0
    rerun_s: float = 0.0
    skew_s: float = 0.0
    attention: Attention = "flash"
    flash_generation: Literal[2, 3] = 3
    selective: Checkpoints = "core"
    modules: bool = False
    selective_launches: float = 1.0
    elementwise: Elementwise = "fused"
    repeats_keys: bool = False
    sequence_parallel: bool = True
    tensor_overlap: bool = False
    splits_messages: bool = True
    keeps_narrow: bool = False
    optimizer_bytes: float = 26.0
    gradient_passes: float = 4.0
    reduce_overlap: float = 0.0
    accumulate_bytes: float = 0.0
    loss_bytes: float = 64.0
    logit_bytes: float = 4.0
    split_logit_bytes: float = 4.0
    keeps_gathered: bool = False
    context_bytes: int = 0
    slack: float = 0.0
    experts: ExpertProducts | None = None
    context: ContextExchange | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_name("a framework", self.name)
        where = f"framework {self.name!r}"
        for name in ("launch_s", "checkpoint_s", "rerun_s", "skew_s"):
            seconds = getattr(self, name)
            require(0 <= seconds <= MOST_SECONDS, f"{where}: {name} is {short(seconds)}, not a time in seconds")
        for name in ("reduce_overlap", "slack"):
            share = getattr(self, name)
            require(0.0 <= share <= 1.0, f"{where}: {name} is {short(share)}, it must be in [0, 1]")
        for name in (
            "selective_launches",
            "optimizer_bytes",
            "gradient_passes",
            "accumulate_bytes",
            "loss_bytes",
            "logit_bytes",
            "split_logit_bytes",
            "context_bytes",
        ):
            amount = getattr(self, name)
            require(0.0 <= amount < 2.0**62, f"{where}: {name} is {short(amount)}, it must not be negative")


FEWEST_RESIDUALS = 30
"""Runs that make an interval: 5 per cent of fewer are not one run on each side."""


class Spread(Value, frozen=True, kw_only=True):
    """How far measured times lie from predictions by constants that were fitted without their runs.

    low, high: the quantiles of measured over predicted time at 5 and at 95 per cent.
    count: of runs.
    left_out: what the fits did not see of a run: its whole model shape, or it alone.
    """

    low: float
    high: float
    count: int
    left_out: Literal["shapes", "runs"]

    def __post_init__(self) -> None:
        require(self.count >= FEWEST_RESIDUALS, f"count is {self.count}, it must be {FEWEST_RESIDUALS} or more")
        require(
            0.0 < self.low <= self.high < MOST_SECONDS,
            f"low is {short(self.low)} and high {short(self.high)}, they must be above 0 and in this order",
        )


class StepCosts(Value, frozen=True, kw_only=True):
    """What the step around the kernels costs in a problem.

    framework: its name.
    optimizer_s_per_element: seconds of the optimizer step for each weight element that a device updates.
    gradient_s_per_element: seconds of the passes over each gradient element that a device holds.
    reduce_overlap: share of the all-reduce of gradients that is hidden behind the backward.
    splits_messages: whether each tensor-parallel rank sends its share of what crosses between stages.
    spreads_rings: whether a collective leaves a node over the network links of all its members there.
    calibrated: not there where the constants are the usual ones; else the spread of the runs that they were
    fitted to, None where these were too few.
    """

    framework: str
    optimizer_s_per_element: float
    gradient_s_per_element: float = 0.0
    reduce_overlap: float = 0.0
    splits_messages: bool = False
    spreads_rings: bool = True
    calibrated: Spread | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        for name in ("optimizer_s_per_element", "gradient_s_per_element"):
            seconds = getattr(self, name)
            require(0.0 <= seconds <= MOST_SECONDS, f"{name} is {short(seconds)}, it must be a time in seconds")
        require(
            0.0 <= self.reduce_overlap <= 1.0, f"reduce_overlap is {self.reduce_overlap}, it must be in [0, 1]"
        )
