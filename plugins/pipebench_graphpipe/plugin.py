"""The planner GraphPipe as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact, Capabilities, Planner

PIPEBENCH_API = 1
TITLE = (
    "Jeon et al., GraphPipe: Improving Performance and Scalability of DNN Training with Graph Pipeline Parallelism"
)
REFERENCE = f"{TITLE}, ASPLOS 2025, arXiv 2406.17145"


class GraphPipeOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `graphpipe`.

    - variant: `paper` takes the smallest bottleneck time per sample at every micro-batch; `improved` the shortest
      simulated mini-batch of these and of others: relaxed targets, partitions as good as the smallest or of more
      replicas, the plans of data-parallel and of pipedream under true dependencies, longer warm-ups. With `best`
      the plans of rannc, alpa-inter and gpipe-hybrid compete too, and finalists under four schedulers: it is never
      behind any of them, in two to five times the search time.
    - objective (paper): the winning micro-batch has the shortest simulated mini-batch, or the smallest bottleneck
      time per sample (tps).
    - targets (improved, best): target periods for each micro-batch, spaced evenly in ratio from the smallest that
      works to 6 times it.
    - near (improved, best): partitions whose bottleneck is at most this share above the smallest, at the
      two best micro-batches; 0: none.
    - rivals (improved, best): whether the plans of data-parallel and pipedream compete; other planners' plans
      never do where these planners take long, from 1,000 operators on 64 devices on.
    - sizes: `one` micro-batch size for all stages, or for `each` stage its own (a size and those next to it),
      tried around the two best micro-batch sizes. It takes seconds.
    - k: largest kFkB of a stage, in powers of two. Tried as `sizes` is.
    - tolerance: the bisection ends when the ratio of worked to failed target is at most 1 + this; 0 goes on to the
      last nanosecond.
    - memo: solve branches that differ in their names only once.
    """

    variant: Literal["improved", "best", "paper"] = "improved"
    objective: Literal["simulated", "tps"] = "simulated"
    targets: int = 9
    near: float = 0.04
    rivals: bool = True
    sizes: Literal["one", "each"] = "one"
    k: int = 1
    tolerance: float = 0.005
    memo: bool = True

    def __post_init__(self) -> None:
        require(
            self.variant == "paper" or self.objective == "simulated",
            f"objective={self.objective} is for variant=paper, the others go by simulated time",
        )
        require(1 <= self.k <= 16, f"k is {self.k}, it must be from 1 to 16")
        require(1 <= self.targets <= 100, f"targets is {self.targets}, it must be from 1 to 100")
        require(0 <= self.near < 1, f"near is {self.near}, it must be from 0 to below 1")
        require(0 <= self.tolerance < 1, f"tolerance is {self.tolerance}, it must be from 0 to below 1")


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `graphpipe`."""
    return (
        Planner(
            name="graphpipe",
            summary="stage graphs that run branches side by side: series-parallel DP under a bisected target",
            load="pipebench_graphpipe.planner:plan",
            kernels="pipebench_graphpipe.compilation:compile_depths",
            calls=(
                "1f1b",
                "greedy",
                "zb-h1",
                "gpipe",
                "data-parallel",
                "pipedream",
                "rannc",
                "alpa-inter",
                "gpipe-hybrid",
            ),
            options=GraphPipeOptions,
            fidelity="reconstructed",
            reference=REFERENCE,
            capabilities=Capabilities(
                graphs="dag",
                regimes=("sync",),
                replicas=True,
                recompute=True,
                per_stage_micro_batch=True,
                context_parallel=True,
                sharding_groups=True,
            ),
            deviations=(
                "algorithms 1 and 2 and table 2 are not in the public text; rebuilt from the prose",
                "the in-flight rule in place of table 2 (inferred, one function, shared with the schedulers): a "
                "last stage keeps k b samples; another the largest, over the stages behind it, of s' + "
                "max(k b, b') + max(0, b - b'), rounded up to its b. It gives figure 5's 10 and 12 and keeps "
                "balanced chains and joins at full rate in simulation; other rules do so too",
                "one micro-batch size and 1F1B for all stages (the paper's default): a stage keeps as many "
                "micro-batches in flight as the longest path of stages from it to a sink; sizes=each and k search "
                "by stage, around the best sizes, with the in-flight rule that stands in for the paper's table 2; "
                "where one fork follows another, stages that come first in the second have one size and k",
                "costs are the suite's: a period is forward + backward at ceil(b/d) samples, what leaves the "
                "stage forward and back at its own replicas (a neighbour with fewer receives more slowly than "
                "that) on one link level with the slowest bandwidth and the largest latency of all that the "
                "devices span, and the all-reduce spread over the micro-batches",
                "an operator that two parts of the decomposition share belongs to a stage of one branch (or of a "
                "group of whole branches), the other branches follow or precede it; the paper leaves this open",
                "owners are offered from the four heaviest and the four lightest branches where there are more "
                "than eight; an owner may take along any number of the lightest other branches, in large graphs "
                "the light ones (under a twentieth of the fork) or all, in larger ones none",
                "virtual ends join several sources and sinks, hold no operator and belong to no stage; an edge "
                "past a part of a chain does not count as a branch, its bytes are charged where it is cut",
                "execution waits for the tensors that a stage reads, also where a part was put in a line",
                "branches in order of weight; runs of whole branches may form one stage; the paper pairs branches",
                "only in-flight values that occur are tried; the paper enumerates all",
                "the bisection starts at the plan found without a target and from a proven bound, in ratio",
                "graphs that are not series-parallel: the smallest region with one way in and one way out is put "
                "in a line; the paper converts them without saying how",
                "at most all devices are used; replica counts are powers of two and divisors of the number of "
                "devices",
                "variant=paper: the micro-batch of the shortest simulated mini-batch wins (appendix A.2 sweeps "
                "it); objective=tps takes the smallest bottleneck. Sizes are those that leave replicas a profiled "
                "size (powers of two of samples where one was profiled); unless it is pinned, a stage takes as "
                "many replicas as leave none more samples than were profiled; sizes that a proven bound shows to "
                "be slower than the best so far are left out",
                "variant=paper takes the first partition of the smallest bottleneck; its objective leaves out how "
                "long the pipeline fills and drains at each update and the all-reduce behind it, so its plan "
                "may lose to plain data parallelism, which is in its space",
                "a stage holds whole branches of a fork, or parts of one branch with what is before or behind it, "
                "but not parts of several; where devices do not divide among the branches a plan of such mixed "
                "stages (PipeDream's with execution=graph) can be better",
                "variant=improved, beyond the paper: relaxed targets, partitions near the smallest bottleneck, "
                "those of two and of four replicas or more in every stage, plans of data-parallel and "
                "pipedream, and warm-ups of two micro-batches a hop compete by simulated mini-batch; "
                "variant=best: also plans of rannc, alpa-inter and gpipe-hybrid, finalists under the best of "
                "four schedulers",
                "variant=improved, its class: stages that hold whole branches of a fork or parts of one branch "
                "(of a region that was put in a line, a run of the line), with replicas that share each micro- "
                "batch, all recomputed or none; variant=best: each stage recomputed or not, copies of the "
                "pipeline, stages of mixed branches where a rival has them. No operator is split, no replicas "
                "take turns. It is the best of its candidates, and nothing is proven of the class",
                "recompute=stage, when pinned, recomputes in every stage; the paper has no recomputation",
            ),
        ),
    )


FIGURES = (
    (
        "fig6",
        "ThroughputByDevices",
        "throughput by devices on three multi-branch models and a sequential one",
        "figure 6",
    ),
    ("table1", "SearchTimes", "search times of GraphPipe, two forms of PipeDream, and Piper", "table 1"),
    ("fig7left", "GainByBranches", "gain over PipeDream by number of branches", "figure 7, left"),
    ("fig7right", "ThroughputByMicroBatch", "throughput by micro-batch size", "figure 7, right"),
    ("fig8", "CaseStudy", "the case study: two timelines, and where the gain comes from", "figure 8, section 7.5"),
    (
        "fig9",
        "StagesAndMicroBatches",
        "ablation: parallel stages, then larger micro-batches",
        "figure 9, section 7.4",
    ),
    ("a3", "SequentialTransformer", "a sequential Transformer, where nothing shall be lost", "appendix A.3"),
)
FIGURE_DEVIATIONS = (
    "times are computed from shapes for a V100 and simulated; the paper measured on Summit with FlexFlow. Its "
    "samples a second are above what the arithmetic of appendix A.2 allows at the fp32 peak: ratios are compared",
    "counts of branches: 4, 7 + 7 and 7 as in appendix A.2; section 7.2 speaks of 2, 8 and 8, which table1 takes, "
    "as the other figures do in full",
    "mini-batches of appendix A.2; micro-batches are powers of two, up to 128 samples on a device or its share of "
    "the mini-batch, swept by each planner by simulated time",
    "Adam, 16 bytes a parameter, fp32; the paper does not say",
    "the paper's baseline is run twice: as it describes it, one stage after the other, and with true dependencies",
)


@hookimpl
def pipebench_artefacts() -> Iterable[Artefact]:
    """The figures and tables of the paper's evaluation."""
    return (
        Artefact(
            name=f"graphpipe/{name}",
            summary=summary,
            load=f"pipebench_graphpipe.artefacts.{name}:{attribute}",
            reference=f"{REFERENCE}, {where}",
            paper=TITLE,
            deviations=FIGURE_DEVIATIONS,
        )
        for name, attribute, summary, where in FIGURES
    )
