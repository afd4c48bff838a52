"""The Piper planner as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value, require_count
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

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
    """

    choice: Literal["exact", "greedy"] = "exact"
    states: Literal["downsets", "linear"] = "downsets"
    max_downsets: int = 40_000
    memory: Literal["piper", "suite"] = "suite"

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
            "Parallelization, NeurIPS 2021",
            capabilities=Capabilities(
                graphs="dag",
                regimes=("sync",),
                replicas=True,
                tensor_parallel=True,
                recompute=True,
                per_stage_micro_batch=True,
            ),
            deviations=(
                "code-checked with choice=greedy, memory=piper: the released code's optimum on 400 random graphs "
                "and on its inputs; "
                "the default choice=exact may find less than the released heuristic, which can overshoot",
                "memory=suite (default), not in the paper: the search counts transfer buffers too, as for "
                "neighbours of one replica, but no workspace. Where its best plan does not fit by the suite's "
                "memory, it plans for less, by what was lacking or twice the last step, and half as much less "
                "where that leaves nothing, 16 times at most for each micro-batch; the plan is then called "
                "heuristic. A plan that fits is missed where at all of these a faster one is found that does not, "
                "and where it fits only because a parameter of several operators counts once",
                "the search bisects on the stage time and keeps the fewest samples in flight; the released code "
                "tabulates every sum of data-parallel degrees",
                "stage time as released: compute, cut tensors and weight synchronisation are added, a tensor is "
                "charged for each consumer outside, synchronisation is 4 (d - 1) / d of the weights (the paper's "
                "parameter server) a mini-batch",
                "replicas take micro-batches in turn: a stage of d replicas has micro-batches of d "
                "times the size, "
                "one part for each; with a pinned micro-batch the replicas share it, and d divides it",
                "a stage keeps more in flight than Piper counts where the next one, of other replicas, would "
                "wait for ever for what this one holds back: whole micro-batches are rounded up",
                "bandwidth is the slowest of the levels that the devices span, latency is left out",
                "weights, gradients and optimizer state are those of the regime (sync fp32 without optimizer: the "
                "2 w of the released inputs)",
                "stages run one after the other, and data-parallel degrees divide the micro-batches "
                "of a mini-batch",
                "operators without any alternative above degree 1 run whole on each device of a tensor-parallel "
                "stage; the released code needs one for every operator",
                "a parameter that several operators use is counted for each of them",
                "the micro-batch is a profiled one that divides the mini-batch, the best by simulated mini-batch "
                "time where there are several; Piper takes it as given",
                "the objective leaves out how long the pipeline fills and drains at each update",
            ),
        ),
    )
