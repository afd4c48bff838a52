"""The MadPipe planner as a plugin."""

from collections.abc import Iterable

from pipebench.domain.value import Value, require
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1


class MadPipeOptions(Value, frozen=True, kw_only=True):
    """iterations: how many targets Algorithm 1 tries (the paper's K) before the exact search takes over."""

    iterations: int = 10

    def __post_init__(self) -> None:
        require(self.iterations >= 0, f"iterations is {self.iterations}, it must not be negative")


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `madpipe`."""
    return (
        Planner(
            name="madpipe",
            summary="memory-aware DP with 1F1B* (contiguous part): Algorithm 1, then the exact contiguous optimum",
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
                "V' = (V (+) U(k, l)) (+) C(k-1): the printed C(k) is an index slip, the prose uses a^(k-1)",
                "Algorithm 1, line 7: lb <- max(lb, min(T_i, That_i)) as in the prose; the printed formula "
                "always takes T_i",
                "Algorithm 1, line 2: the sum of C runs over cuts 1 to L-1; infeasible is an answer of its own",
                "the period of each allocation found is its shortest under 1F1B*, which tightens the bracket",
                "what Algorithm 1 leaves open after its iterations is closed by an exact bisection",
                "at most P stages, not exactly P",
                "layers: cuts of at most one tensor, every operator where those are too coarse for the devices",
                "each hop between neighbouring devices has its own bandwidth; stored activations are those of "
                "the profile, not the inputs of layers",
                "the micro-batch is swept; the paper takes it as given",
            ),
        ),
    )
