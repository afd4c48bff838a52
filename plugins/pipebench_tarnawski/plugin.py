"""Tarnawski's throughput planner as a plugin."""

from collections.abc import Iterable

from pipebench.domain.value import Value, require_count
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1
PIPEBENCH_WAIVED = {
    "tarnawski:memory-edge": "memory as released: what is saved counts once, not for each micro-batch in flight"
}
"""Checks of the conformance kit that do not hold, each with the reason (see `deviations`)."""


class TarnawskiPlannerOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `tarnawski`.

    - linearize: cut one depth-first order of the operators, not the graph.
    - max_downsets: a graph with more of them is refused.
    """

    linearize: bool = False
    max_downsets: int = 60_000

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
            "Placement of DNN Graph Operators, NeurIPS 2020",
            capabilities=Capabilities(graphs="dag", regimes=("sync", "async")),
            deviations=(
                "the search bisects on the load and looks at pairs whose latencies are within it; "
                "the released code "
                "tabulates all pairs",
                "load as released: latencies, and every output that enters or leaves the device "
                "once, summed; a CPU "
                "(devices of type `cpu`) pays for no output and has no memory limit",
                "memory as released: sizes are added once, not for each micro-batch in flight, and there is no "
                "replication; weights, where the profile tells them apart, as the regime keeps them",
                "operators without latency beside one other operator only are merged with it, as released, "
                "but only if they have no bytes or memory cannot bind (the released program may lose the optimum "
                "there); other "
                "contractions (colour classes, cycles) are done by the reader of the files",
                "linearize follows one depth-first order; the released one depends on the order of a hash table",
                "the micro-batch is the pinned one, else the largest profiled one that divides the mini-batch",
            ),
        ),
    )
