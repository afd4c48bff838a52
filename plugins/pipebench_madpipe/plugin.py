"""The MadPipe planner as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact, Capabilities, Planner

PIPEBENCH_API = 1


class MadPipeOptions(Value, frozen=True, kw_only=True):
    """cuts: stages begin at any operator, or only where one tensor crosses (the paper's layers)."""

    cuts: Literal["operators", "layers"] = "operators"


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `madpipe`."""
    return (
        Planner(
            name="madpipe",
            summary="memory-aware DP over the delays of 1F1B*, on contiguous allocations: the shortest period",
            load="pipebench_madpipe.planner:plan",
            options=MadPipeOptions,
            fidelity="improved",
            reference=(
                "Beaumont, Eyraud-Dubois, Shilova, MadPipe: Memory Aware Dynamic Programming Algorithm for "
                "Pipelined Model Parallelism, hal-03025305"
            ),
            capabilities=Capabilities(graphs="dag", regimes=("async",), recompute=True),
            deviations=(
                "contiguous allocations only: no special processor, so neither t_P nor m_P nor the ILP",
                "delays V are exact integers, not one of 51 grid values",
                "V' = (V (+) U(k, l)) (+) C(k-1): the printed C(k) is an index slip, T_N and T_S use a^(k-1)",
                "MadPipe-DP decides whether a target period is met (stages and transfers above it are left "
                "out) instead of returning the least load; Algorithm 1 is then a bisection, run until it closes "
                "instead of for K = 10 steps. The period is that of Algorithm 1 with line 7 "
                "corrected (lb <- max(lb, min(T_i, That_i))) and run to its end, found with less work",
                "the upper end of the bracket (line 2) sums C over cuts 1 to L-1, and drops to the shortest "
                "1F1B* period of each allocation found; no plan at that end means infeasible",
                "at most P stages, not exactly P",
                "cut behind any operator of the topological order, tensors that cross several cuts are passed on; "
                "cuts=layers cuts only where at most one tensor crosses, as the paper",
                "each hop between neighbouring devices has its own level; what a layer stores is the profile's "
                "figure, not the layer's input",
                "a link carries one transfer at a time, both directions in turn, on every cluster, as in the "
                "paper; on full-duplex links the plan may run faster than claimed, and the bound given is that of "
                "any periodic order of contiguous stages, on links without contention there is none",
                "the micro-batch is swept over the profiled sizes that divide the mini-batch (where one size was "
                "profiled, that one); the paper takes it as given",
            ),
        ),
    )


TITLE = (
    "Beaumont, Eyraud-Dubois, Shilova, MadPipe: Memory Aware Dynamic Programming Algorithm for Pipelined Model "
    "Parallelism"
)
FIGURES = (
    ("fig6", "periods over memory for ResNet-50, estimates and schedules", "figure 6"),
    ("fig7", "PipeDream's period over MadPipe's, four networks", "figure 7"),
    ("fig8", "speedup over one device, four networks", "figure 8"),
)
FIGURE_DEVIATIONS = (
    "profiles are computed from shapes for a V100 at 1000 x 1000, unless files are given; the paper measured, "
    "on a platform that it does not name",
    "every profile is joined to the paper's chain: layers between single-tensor cuts, each of which stores what "
    "enters it, a_{l-1}; a real layer keeps more",
    "files are scaled to images of 1000 x 1000: times and activations by the ratio of pixels",
    "the paper plots its series and prints no values: its claims can be tested, its curves cannot",
    "steps of P and M are ours: the paper gives the ranges",
    "the paper's sentence on PipeDream's memory can be read in three ways; all three are run and named",
)


@hookimpl
def pipebench_artefacts() -> Iterable[Artefact]:
    """Figures 6, 7 and 8 of the paper."""
    return (
        Artefact(
            name=f"madpipe/{name}",
            summary=summary,
            load=f"pipebench_madpipe.figures.{name}:{name.capitalize()}",
            reference=f"{TITLE}, hal-03025305, {where}",
            paper=TITLE,
            deviations=FIGURE_DEVIATIONS,
        )
        for name, summary, where in FIGURES
    )
