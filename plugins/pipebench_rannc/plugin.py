"""The planner RaNNC and its paper's figures as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact, Capabilities, Planner

PIPEBENCH_API = 1
TITLE = "Tanaka, Taura, Hanawa, Torisawa, Automatic Graph Partitioning for Very Large-scale Deep Learning"
REFERENCE = f"{TITLE}, IPDPS 2021, arXiv 2103.16063"
MOST_BLOCKS = 2**20


class RaNNCOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `rannc`.

    - variant: `best` searches all numbers of stages and micro-batches and chooses by simulation; `paper` is
      Algorithms 1 and 2 as printed; `released` follows the released code.
    - blocks: k; 0 makes stages of atomic subcomponents.
    - simulations (best): number of plans to simulate.
    - rivals (best): whether the plans of data-parallel and gpipe-hybrid compete.
    - coarsening: `paper` joins neighbours on either side by the least time of the union, `released` successors by
      the largest gain. This option and those below are the differences between paper and released code; None: as
      the variant has it.
    - uncoarsening: whether there is any.
    - compaction: join the neighbour of less time by itself (`own`), or in the union (`union`).
    - replicas: of a stage, `any` number or `powers` of two.
    - communication: a stage sends its outputs (`out`), or also receives its inputs (`both`); these do not
      accumulate.
    - margin: share of device memory that stays free.
    - in_flight: the inputs of `all` micro-batches in flight count, or those of `one`.
    - prune: after a failure fewer devices are given up for all stages behind (`printed`), for one number of stages
      (`stages`), or never (`none`).
    - nodes: 1, 2, 4, … (`doubling`), or the `divisors` of their number.
    - stages: from the `printed` D_node (n - 1) + 1, or from one above those tried before (`next`).
    - micro_batches: the most of them; 0: no limit.
    - choice: among numbers of micro-batches, by `bottleneck` times the steps of the pipeline, or by a sum over
      `steps`.
    - labels: the stage search keeps `one` pair of times, or `all` that may be best (in neither variant).
    """

    variant: Literal["best", "paper", "released"] = "best"
    blocks: int = 32
    simulations: int = 64
    rivals: bool = True
    coarsening: Literal["paper", "released"] | None = None
    uncoarsening: bool | None = None
    compaction: Literal["own", "union"] | None = None
    replicas: Literal["any", "powers"] | None = None
    communication: Literal["out", "both"] | None = None
    margin: float | None = None
    in_flight: Literal["all", "one"] | None = None
    prune: Literal["printed", "stages", "none"] | None = None
    nodes: Literal["doubling", "divisors"] | None = None
    stages: Literal["printed", "next"] | None = None
    micro_batches: int | None = None
    choice: Literal["bottleneck", "steps"] | None = None
    labels: Literal["one", "all"] | None = None

    def __post_init__(self) -> None:
        require(0 <= self.blocks <= MOST_BLOCKS, f"blocks is {self.blocks}, it must be from 0 to {MOST_BLOCKS}")
        require(1 <= self.simulations <= 1000, f"simulations is {self.simulations}, it must be from 1 to 1000")
        require(
            self.margin is None or 0 <= self.margin < 1, f"margin is {self.margin}, it must be from 0 to below 1"
        )
        require(
            self.micro_batches is None or self.micro_batches >= 0,
            f"micro_batches is {self.micro_batches}, it must not be negative",
        )
        given = [name for name in SEARCH_ONLY if getattr(self, name) is not None]
        require(
            self.variant != "best" or not given,
            f"{', '.join(given)}: for variant=paper and variant=released; variant=best searches all",
        )


SEARCH_ONLY = ("communication", "in_flight", "prune", "nodes", "stages", "micro_batches", "choice", "labels")
"""Options of Algorithms 1 and 2, which variant=best replaces."""

DEVIATIONS = (
    "a stage is profiled by the suite's cost model: times are sums over its operators, so a union takes what its "
    "parts take together and only transfers, memory and convexity tell unions apart; the paper runs each on a GPU",
    "blocks are made at the samples of a replica when all devices are replicas and there are 32 micro-batches "
    "(the released code's choice; the paper does not say)",
    "uncoarsening: a piece moves by what it does to the final blocks: less time for their messages, memory, an "
    "order of the blocks; the paper judges the groups of the next level",
    "a union is convex when no other path leads from one part to the other in the graph of groups as it is then; "
    "two convex groups could still wait for each other, so this is what gives blocks an order",
    "Algorithm 1 keeps one pair of longest forward and backward for each state, which is not exact for the sum of "
    "two maxima (labels=all is); printed, devices that failed once are given up for all stages behind, which "
    "loses plans (prune=none does not)",
    "replicas share a micro-batch by ceiling, as the released code and the suite have it; the paper by floor",
    "the time to send a stage's outputs is that of messages between as many replicas over links inside a node "
    "(the paper's footnote 3)",
    "line 9 of Algorithm 2 says B where BS is meant; `best` in line 17 is not defined: paper takes the bottleneck "
    "times micro-batches + stages - 1, released the sum over steps of the released code",
    "numbers of micro-batches that do not divide the mini-batch are left out",
    "memory is the suite's: weights, gradients, optimizer state, one set of activations and the inputs of every "
    "micro-batch in flight, buffers, workspace; checkpointing when there is more than one micro-batch",
    "released: bandwidths are the cluster's, not 20 and 10 GiB/s; stages stand side by side, not interleaved",
    "the schedule is gpipe for paper and released (figure 1 of the paper); variant=best takes gpipe or 1f1b",
    "one node of all devices where they do not fill nodes evenly",
    "variant=best, beyond the paper: every number of nodes, stages and micro-batches, labels=all, checkpointing "
    "only in stages that need it, the shortest simulated mini-batch, and the plans of data-parallel and "
    "gpipe-hybrid compete",
)


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `rannc`."""
    return (
        Planner(
            name="rannc",
            summary="tens of thousands of operators to balanced blocks, these to replicated stages by a DP",
            load="pipebench_rannc.planner:plan",
            calls=("1f1b", "gpipe", "data-parallel", "gpipe-hybrid"),
            options=RaNNCOptions,
            fidelity="paper",
            reference=REFERENCE,
            capabilities=Capabilities(
                graphs="dag",
                regimes=("sync",),
                replicas=True,
                recompute=True,
                context_parallel=True,
                sharding_groups=True,
            ),
            deviations=DEVIATIONS,
            default_scheduler={"sync": "gpipe"},
        ),
    )


FIGURES = (
    ("fig4", "BertThroughput", "throughput of enlarged BERT models on 32 devices, with the baselines", "figure 4"),
    ("fig5", "ResNetThroughput", "throughput of enlarged ResNet models on 32 and 8 devices", "figure 5"),
    ("coarsening", "SearchOnBlocks", "search time with blocks and without", "section IV-C"),
)
FIGURE_DEVIATIONS = (
    "profiles are computed from shapes for a V100, nothing was run; the paper trains",
    "fp32 only: the paper's runs in mixed precision are left out",
    "Megatron-LM is the planner tensor-parallel without accumulation, recomputing by layer, at degrees inside a "
    "node; the paper tries up to 32. At 16 and 32 the inputs of layers alone take more than a device has, for "
    "every model that is larger than those it holds here",
    "Megatron-LM also runs with nothing recomputed: the paper says that gradient checkpointing was implemented "
    "for it, not whether it was on where a model fits without",
    "GPipe-Hybrid, PipeDream-2BW: the best number of stages and micro-batches by simulation, of those that divide "
    "the layers; the paper tries 2, 4, 8 and 16 stages",
    "GPipe-Model: eight stages of whole residual blocks, cut for the least busiest stage; the paper cuts by hand",
    "the optimizer is Adam; the paper does not name it",
    "the figures are charts without values: their sentences can be tested, their bars cannot",
)


@hookimpl
def pipebench_artefacts() -> Iterable[Artefact]:
    """Figures 4 and 5 of the paper, and its section on coarsening."""
    return (
        Artefact(
            name=f"rannc/{name}",
            summary=summary,
            load=f"pipebench_rannc.figures.{name}:{attribute}",
            reference=f"{REFERENCE}, {where}",
            paper=TITLE,
            deviations=FIGURE_DEVIATIONS,
        )
        for name, attribute, summary, where in FIGURES
    )
