"""PaSE and the strategies that its paper compares it with, as planners."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact, Capabilities, Planner
from pipebench_pase.original import ORIGINAL

PIPEBENCH_API = 1
_AS_DESIGNED = "a strategy of experts is what it is: none knows a memory limit"
_PAPERS_COSTS = "claims are in the paper's cost model: rates that options give, not a profile"
PIPEBENCH_WAIVED = {
    "expert:infeasible": _AS_DESIGNED,
    "expert:memory-edge": _AS_DESIGNED,
    **{f"{planner}:claims": _PAPERS_COSTS for planner in ("pase", "expert", "mcmc")},
}
"""Checks of the conformance kit that do not hold, each with the reason (see `deviations`)."""
Memory = Literal["ignored", "suite"]
PAPER = "Elango, PaSE: Parallelization Strategies for Efficient DNN Training, IPDPS 2021, arXiv 2407.04001"


class CostOptions(Value, frozen=True, kw_only=True):
    """What a strategy costs: the formulas of PaSE's prototype.

    - tflops, bandwidth: of the paper's formulas, 10^12 multiply-adds and 10^9 bytes a second; 0: the cluster's
      peak rate and its slowest level.
    - word_bytes: of one number that is moved.
    - cutoff: the least size of a part of a dim; 0: 4 where the graph has convolutions, else 1.
    - parallel: of several tensors between two operators the `last` alone is moved, or `each`.
    - describe: list the splits in the notices.
    """

    tflops: float = 10.0
    bandwidth: float = 16.0
    word_bytes: int = 8
    cutoff: int = 0
    parallel: Literal["last", "each"] = "last"
    describe: bool = False

    def __post_init__(self) -> None:
        for name in ("tflops", "bandwidth"):
            number = getattr(self, name)
            require(0 <= number < float("inf"), f"{name} is {number}, it must be 0 or more")
        require(self.word_bytes >= 1, f"word_bytes is {self.word_bytes}, it must be at least 1")
        require(self.cutoff >= 0, f"cutoff is {self.cutoff}, it must be 0 or more")


class PaSEOptions(CostOptions, frozen=True, kw_only=True):
    """The options of costs (tflops, bandwidth, word_bytes, cutoff, parallel, describe), and these.

    - ordering: of the elimination.
    - table_gb: the largest table, in 10^9 bytes; a search that needs a larger one is refused before it starts.
    - memory: `suite`: the best strategy that fits in device memory, as the suite counts it; `ignored`, as in the
      paper.
    - nodes (memory=suite): eliminations after which the search ends with the best so far and a bound.
    """

    ordering: Literal["generate-seq", "breadth-first", "min-fill"] = "generate-seq"
    table_gb: float = 2.0
    memory: Memory = "suite"
    nodes: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.nodes >= 1, f"nodes is {self.nodes}, it must be at least 1")
        require(self.table_gb > 0, f"table_gb is {self.table_gb}, it must be above zero")


class ExpertOptions(CostOptions, frozen=True, kw_only=True):
    """The options of costs (tflops, bandwidth, word_bytes, cutoff, parallel, describe), and these.

    - strategy: `auto` takes gnmt for graphs with an LSTM, owt for convolutions, mesh-tensorflow for attention,
      else data-parallel.
    """

    strategy: Literal["auto", "data-parallel", "owt", "gnmt", "mesh-tensorflow"] = "auto"


class MCMCOptions(CostOptions, frozen=True, kw_only=True):
    """The options of costs (tflops, bandwidth, word_bytes, cutoff, parallel, describe), and these.

    - start: the strategy that the walk starts from.
    - iterations: the most of them. The walk ends earlier when half of so many in a row do not improve the best.
    - beta: a worse strategy is taken with probability exp(-beta x loss / cost of the start).
    - memory: `suite`: the start is led down until it fits in device memory, as the suite counts it, and no
      proposal leaves it; `ignored`, as in the paper.
    """

    start: Literal["auto", "data-parallel"] = "auto"
    iterations: int = 250_000
    beta: float = 3000.0
    memory: Memory = "suite"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.iterations >= 1, f"iterations is {self.iterations}, it must be at least 1")
        require(self.beta >= 0, f"beta is {self.beta}, it must be 0 or more")


CAPABILITIES = Capabilities(graphs="dag", regimes=("sync",), replicas=True, tensor_parallel=True)
PRICED = (
    "layer costs are those of the released prototype; the paper prints no formula",
    "a configuration cuts a dim into any divisor of its size, not powers of two only, and may leave devices "
    "idle, as in the prototype",
    "of several tensors between two operators only the last is moved, as in the prototype (parallel=each: all)",
    "operators whose kind the prototype lacks cost their FLOP in equal shares (or the profile's time where no "
    "rule counts FLOP) and the reductions that their axes ask for; operators without dims are cut by samples only",
    "attention as one operator is cut by samples and heads only",
    "the whole mini-batch at once, as one stage on all devices; a pinned micro-batch is repeated",
)


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planners `pase`, `expert` and `mcmc`."""
    return (
        Planner(
            name="pase",
            summary="splits each operator's dims over all devices: exact dynamic programming over a good order",
            load="pipebench_pase.planner:plan",
            options=PaSEOptions,
            fidelity="code-checked",
            reference=f"{PAPER}; baidu-research/PaSE",
            capabilities=CAPABILITIES,
            original=ORIGINAL,
            deviations=(
                *PRICED,
                "dense tables eliminated one vertex at a time in place of the prototype's data frames: the same "
                "optimum; equal parts of the graph are eliminated once",
                "ordering=breadth-first is refused where a table would pass table_gb; the paper's ran out of "
                "memory",
                "not in the paper: ordering=min-fill; memory=suite (default), the best strategy that the suite "
                "says fits (Lagrangian bounds and branching until they meet; weights that several operators "
                "share count for each, so that one may be missed that fits). memory=ignored is the paper's "
                "search, and what is code-checked; both agree where its best fits",
            ),
        ),
        Planner(
            name="expert",
            summary="strategies of experts: one weird trick, GNMT's, Mesh-TensorFlow's, data parallelism",
            load="pipebench_pase.expert:plan",
            options=ExpertOptions,
            fidelity="reconstructed",
            reference=(
                "Krizhevsky, One weird trick, arXiv 1404.5997; Wu et al., GNMT, arXiv 1609.08144; Shazeer et "
                f"al., Mesh-TensorFlow, NeurIPS 2018; as compared in {PAPER}, section IV"
            ),
            capabilities=CAPABILITIES,
            deviations=(
                *PRICED,
                "owt: fully connected layers and the loss are cut by output features and classes, all else by "
                "samples",
                "gnmt: LSTM layers times samples, all else by samples; its placement of layers is not a split",
                "mesh-tensorflow: m parts of the samples, n of the vocabulary, the hidden layer and the heads; m "
                "is the largest divisor of the devices up to their square root, up to 4 devices all of them, "
                "which gives the released benchmark's table",
                "where a size is not a multiple, the largest divisor below the number of devices",
            ),
        ),
        Planner(
            name="mcmc",
            summary="random walk over splits from the expert strategy, as FlexFlow searches",
            load="pipebench_pase.mcmc:plan",
            options=MCMCOptions,
            fidelity="reconstructed",
            reference="Jia et al., Beyond Data and Model Parallelism, MLSys 2019, arXiv 1807.05358; as run "
            f"in {PAPER}, IV-A",
            capabilities=CAPABILITIES,
            deviations=(
                *PRICED,
                "costs are PaSE's, so that the searches compare; FlexFlow simulates a graph of measured times",
                "search time is counted in iterations, which a seed repeats; the paper's text lacks their number",
                "a proposal replaces the configuration of one operator; beta is not given",
                "memory=suite (default), not as run in the paper: a proposal that does not fit is not taken, and "
                "a start that does not is changed first, one operator at a time, by what costs the least for a "
                "byte saved; weights that several operators share count for each",
            ),
        ),
    )


FIGURES = (
    ("table1", "SearchTimesByOrdering", "search times of both orderings and of the random walk", "table I"),
    ("fig6", "SpeedupsOverDataParallel", "speedups of four strategies over data parallelism", "figure 6"),
    ("table2", "StrategiesOn32", "the strategies on 32 devices", "table II"),
)


@hookimpl
def pipebench_artefacts() -> Iterable[Artefact]:
    """Tables I and II, figure 6."""
    return (
        Artefact(
            name=f"pase/{name}",
            summary=summary,
            load=f"pipebench_pase.figures.{name}:{attribute}",
            reference=f"{PAPER}, {where}",
            paper=PAPER,
            deviations=(
                "V100 nodes of 8 (cluster rannc) in place of 1080 Ti and 2080 Ti nodes; times are simulated on "
                "the suite's costs, not measured",
                "device memory is taken to be enough, as the paper's search does (memory=ignored)",
                "mini-batch 128 for the convolutional networks, 64 for the others: the numbers are not in the "
                "paper's text",
                "FlexFlow is stood for by a random walk on PaSE's costs",
            ),
        )
        for name, attribute, summary, where in FIGURES
    )
