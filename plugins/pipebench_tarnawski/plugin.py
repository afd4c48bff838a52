"""Tarnawski's throughput planner as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value, require_count
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner
from pipebench_tarnawski.original import ORIGINAL

PIPEBENCH_API = 1


class TarnawskiPlannerOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `tarnawski`.

    - linearize: cut one depth-first order of the operators, not the graph.
    - max_downsets: a graph with more of them is refused.
    - memory: `suite`: the plan fits by the suite's memory, with as many micro-batches in flight as 1F1B holds;
      `released`: sizes are added once, as the released program does.
    """

    linearize: bool = False
    max_downsets: int = 60_000
    memory: Literal["released", "suite"] = "suite"

    def __post_init__(self) -> None:
        require_count("max_downsets", self.max_downsets)


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `tarnawski`."""
    return (
        Planner(
            name="tarnawski",
            summary="DP over pairs of downsets: smallest largest load of accelerators and CPUs",
            load="pipebench_tarnawski.planner:plan",
            options=TarnawskiPlannerOptions,
            fidelity="code-checked",
            reference="Tarnawski, Phanishayee, Devanur, Mahajan, Paravecino, Efficient Algorithms for Device "
            "Placement of DNN Graph Operators, NeurIPS 2020, arXiv 2006.16423",
            capabilities=Capabilities(graphs="dag", regimes=("sync", "async")),
            original=ORIGINAL,
            deviations=(
                "the search bisects on the load and looks at pairs whose latencies are within it; "
                "the released code "
                "tabulates all pairs",
                "load as released: latencies, and every output that enters or leaves the device "
                "once, summed; a CPU "
                "(devices of type `cpu`) pays for no output",
                "memory=suite (default), not in the paper: the search counts exactly what the suite does: what "
                "is saved for each micro-batch that 1F1B holds, each parameter once, transfer buffers, "
                "workspace, and the memory of CPUs; where the largest micro-batch has no split that fits, the "
                "next smaller one is tried. In async a split that fits only with fewer in flight than 1F1B holds "
                "is taken last",
                "memory=released: sizes are added once, not for each micro-batch in flight, and there is no "
                "replication; weights, where the profile tells them apart, as the regime keeps them. CPUs have no "
                "limit. Code-checked is this count; both agree where memory is plenty",
                "operators without latency beside one other operator only are merged with it, as released, "
                "but only if they have no bytes or memory cannot bind (the released program may lose the optimum "
                "there); other "
                "contractions (colour classes, cycles) are done by the reader of the files",
                "linearize follows one depth-first order; the released one depends on the order of a hash table",
                "the micro-batch is the pinned one, else the largest profiled one that divides the mini-batch",
            ),
        ),
    )
