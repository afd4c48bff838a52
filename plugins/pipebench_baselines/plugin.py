"""Data parallelism, equal cuts and the exact contiguous optimum as planners."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1


class ContiguousOptions(Value, frozen=True, kw_only=True):
    """cuts: stages begin at any operator, or only where at most one tensor crosses."""

    cuts: Literal["operators", "layers"] = "operators"


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planners `data-parallel`, `uniform`, `layout` and `contiguous-exact`."""
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
            capabilities=Capabilities(
                regimes=("sync", "async"), replicas=True, tensor_parallel=True, recompute=True
            ),
        ),
        Planner(
            name="layout",
            summary=(
                "what training frameworks run: the same TP, DP, micro-batch on all stages, uneven contiguous cuts"
            ),
            load="pipebench_baselines.layout:plan",
            capabilities=Capabilities(
                graphs="dag", regimes=("sync",), replicas=True, tensor_parallel=True, recompute=True
            ),
            fidelity="improved",
            reference="Narayanan et al. 2021, Efficient Large-Scale Language Model Training on GPU Clusters",
            deviations=(
                "no planner of the paper: all degrees that honour the pins and use the devices, cut where the "
                "busiest "
                "device is fastest (exact for one stage a device), the best few simulated under (interleaved) "
                "1F1B",
            ),
        ),
        Planner(
            name="contiguous-exact",
            summary="the contiguous plan of the shortest period under 1F1B*; proven optimal on half-duplex links",
            load="pipebench_baselines.contiguous_exact:plan",
            options=ContiguousOptions,
            capabilities=Capabilities(graphs="dag", regimes=("async",), recompute=True),
            fidelity="improved",
            reference=(
                "Beaumont, Eyraud-Dubois, Shilova, MadPipe: Memory Aware Dynamic Programming Algorithm for "
                "Pipelined Model Parallelism, hal-03025305"
            ),
            deviations=(
                "no planner of the paper: the optimum over all cuts of a chain of layers into stages of one "
                "device, with the memory that the paper's 1F1B* groups (Proposition 1) show to be necessary",
                "cut behind any operator of the topological order, tensors that cross several cuts are passed on",
                "planned as if a link carried one transfer at a time, both directions in turn, as in the paper: "
                "the optimum is proven where links do (link_mode half) and no tensor lacks a gradient. On "
                "full-duplex links the plan may run faster than claimed, and the bound given is that of any "
                "periodic order of contiguous stages; on links without contention (delay) no bound is given",
                "the micro-batch is swept over the profiled sizes that divide the mini-batch (where one size was "
                "profiled, that one); the paper takes it as given",
            ),
        ),
    )
