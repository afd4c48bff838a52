"""The Piper planner as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.plan import ReplicaMode
from pipebench.domain.value import Value, require_count
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner
from pipebench_piper.original import ORIGINAL

PIPEBENCH_API = 1


class PiperPlannerOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `piper`.

    - choice: how the ways to run the operators of a stage are chosen: `greedy` as the released code does, `exact`
      the best.
    - states: `downsets` of the graph, or `linear`, the prefixes of one topological order.
    - max_downsets: a graph with more of them is refused; beyond 512 operators or 64 devices also one whose
      downsets take long to compare.
    - memory: `suite`: the plan fits by the suite's memory, with transfer buffers and workspace; the search goes on
      with less memory until it does. `piper`: weights, fixed bytes and what live micro-batches save, as in the
      paper and the released code.
    - replicas: `round_robin`: those of a stage take whole micro-batches in turn, as Piper means them. `split`:
      they share the samples of each.
    """

    choice: Literal["exact", "greedy"] = "exact"
    states: Literal["downsets", "linear"] = "downsets"
    max_downsets: int = 40_000
    memory: Literal["piper", "suite"] = "suite"
    replicas: ReplicaMode = "round_robin"

    def __post_init__(self) -> None:
        require_count("max_downsets", self.max_downsets)


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `piper`."""
    return (
        Planner(
            name="piper",
            summary="DP over downsets: replicas, tensor parallelism, recomputation, in-flight memory",
            load="pipebench_piper.planner:plan",
            calls=("1f1b",),
            options=PiperPlannerOptions,
            fidelity="code-checked",
            reference="Tarnawski, Narayanan, Phanishayee, Piper: Multidimensional Planner for DNN "
            "Parallelization, NeurIPS 2021, OpenReview -U9I0f2S7W",
            capabilities=Capabilities(
                graphs="dag",
                regimes=("sync",),
                replicas=True,
                tensor_parallel=True,
                recompute=True,
                round_robin=True,
                context_parallel=True,
                sharding_groups=True,
            ),
            original=ORIGINAL,
            deviations=(
                "code-checked with choice=greedy, memory=piper: the released code's optimum on 400 random graphs "
                "and on its inputs; "
                "the default choice=exact may find less than the released heuristic, which can overshoot",
                "memory=suite (default), not in the paper: the search counts transfer buffers too, but no "
                "workspace. Where its best plan does not fit by the suite's memory, it plans for less, by what "
                "was lacking or twice the last step, and half as much less where that leaves nothing, 16 times "
                "at most for each micro-batch; the plan is then called heuristic. A plan that fits is missed "
                "where at all of these a faster one is found that does not, and where it fits only because a "
                "parameter of several operators counts once",
                "the search bisects on the stage time and keeps the fewest samples in flight; the released code "
                "tabulates every sum of data-parallel degrees",
                "stage time as released: compute, cut tensors and weight synchronisation are added, a tensor is "
                "charged for each consumer outside, synchronisation is 4 (d - 1) / d of the weights (the paper's "
                "parameter server) a mini-batch",
                "replicas take whole micro-batches in turn, as the paper and the released code mean: a stage of d "
                "replicas takes its time, and that of its cut tensors, once in d micro-batches. replicas=split, "
                "not in the paper: they share the samples of each micro-batch, which d then divides",
                "in flight: as many as let 1F1B with a fixed order keep the pace, where the memory allows it; "
                "else as many as Piper counts, which may be fewer: the sum of the degrees from the stage on, over "
                "its own, rounded up",
                "bandwidth is the slowest of the levels that the devices span, latency is left out",
                "weights, gradients and optimizer state are those of the regime (sync fp32 without optimizer: the "
                "2 w of the released inputs)",
                "stages run one after the other, and data-parallel degrees divide the micro-batches "
                "of a mini-batch; stages that exchange tensors and whose degrees have a common multiple above "
                "1,024 are refused, because the suite does not price their messages",
                "operators without any alternative above degree 1 run whole on each device of a tensor-parallel "
                "stage; the released code needs one for every operator",
                "a parameter that several operators use is counted for each of them",
                "the micro-batch is a profiled one that divides the mini-batch, the best by simulated mini-batch "
                "time where there are several; Piper takes it as given",
                "the objective leaves out how long the pipeline fills and drains at each update",
            ),
        ),
    )
