"""Data parallelism, equal cuts and the exact contiguous optimum as planners."""

from collections.abc import Iterable

from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planners `data-parallel`, `uniform` and `contiguous-exact`."""
    return (
        Planner(
            name="data-parallel",
            summary="one stage on all devices with gradient accumulation; the best micro-batch by its time",
            load="pipebench_baselines.data_parallel:plan",
            capabilities=Capabilities(regimes=("sync", "async"), replicas=True, recompute=True),
        ),
        Planner(
            name="uniform",
            summary="as many stages as devices, each with the same number of layers (or operators), run in order",
            load="pipebench_baselines.uniform:plan",
            capabilities=Capabilities(regimes=("sync", "async"), replicas=True, recompute=True),
        ),
        Planner(
            name="contiguous-exact",
            summary="the contiguous plan of the shortest period under 1F1B*, proven optimal for whole stages",
            load="pipebench_baselines.contiguous_exact:plan",
            capabilities=Capabilities(graphs="dag", regimes=("async",), recompute=True),
            fidelity="improved",
            reference=(
                "Beaumont, Eyraud-Dubois, Shilova, MadPipe: Memory Aware Dynamic Programming Algorithm for "
                "Pipelined Model Parallelism, hal-03025305"
            ),
            deviations=(
                "no planner of the paper: the optimum over all cuts of a chain of layers into stages of one "
                "device, with the memory that the paper's 1F1B* groups (Proposition 1) show to be necessary",
                "layers: cuts of at most one tensor, every operator where those are too coarse for the devices",
                "the micro-batch is swept; the paper takes it as given",
            ),
        ),
    )
