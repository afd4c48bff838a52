"""Data and tensor parallelism, equal cuts and the exact contiguous optimum as planners."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1
PIPEBENCH_WAIVED = {"tensor-parallel:capabilities": "it needs a profile with tensor-parallel alternatives"}
"""Checks of the conformance kit that do not hold, each with the reason."""


HYBRID = (
    "layers are those that operators name, what has none joins the layer before; where none does, every operator",
    "numbers of stages: divisors of the number of devices from 2 that divide the layers (where none does, parts "
    "differ by one layer); the RaNNC paper tries 2, 4, 8 and 16",
    "micro-batches are swept by simulated time",
)


class ContiguousOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `contiguous-exact`.

    - cuts: stages begin at any operator, or only where at most one tensor crosses.
    """

    cuts: Literal["operators", "layers"] = "operators"


class HybridOptions(Value, frozen=True, kw_only=True):
    """Options of the planners `gpipe-hybrid` and `pipedream-2bw`.

    - checkpointing: every stage keeps its inputs only and runs its forward again (`always`, as in the RaNNC
      paper's experiments), or plans without it compete (`needed`).
    - cuts: stages have equal numbers of layers, or the busiest stage takes the least `time` (GPipe-Model in the
      same paper).
    """

    cuts: Literal["layers", "time"] = "layers"
    checkpointing: Literal["always", "needed"] = "always"


class TensorParallelOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `tensor-parallel`.

    - accumulation: the mini-batch may be run as several micro-batches; the RaNNC paper's Megatron-LM cannot.
    """

    accumulation: bool = True


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """Plans without a search, and `contiguous-exact`."""
    return (
        Planner(
            name="data-parallel",
            summary="one stage on all devices with gradient accumulation; the best micro-batch by its time",
            load="pipebench_baselines.one_stage:data_parallel",
            calls=("1f1b", "1f1b*"),
            capabilities=Capabilities(
                regimes=("sync", "async"),
                replicas=True,
                recompute=True,
                expert_parallel=True,
                context_parallel=True,
                sharding_groups=True,
            ),
        ),
        Planner(
            name="uniform",
            summary="as many stages as devices, each with the same number of layers (or operators), run in order",
            load="pipebench_baselines.even_stages:uniform",
            calls=("1f1b", "1f1b*"),
            capabilities=Capabilities(
                regimes=("sync", "async"),
                replicas=True,
                tensor_parallel=True,
                recompute=True,
                expert_parallel=True,
                context_parallel=True,
                sharding_groups=True,
            ),
        ),
        Planner(
            name="layout",
            summary=(
                "what training frameworks run: the same TP, DP, micro-batch on all stages, uneven contiguous cuts"
            ),
            load="pipebench_baselines.layout:plan",
            calls=("1f1b", "interleaved-1f1b"),
            capabilities=Capabilities(
                graphs="dag",
                regimes=("sync",),
                replicas=True,
                tensor_parallel=True,
                recompute=True,
                non_contiguous=True,
                expert_parallel=True,
                context_parallel=True,
                sharding_groups=True,
            ),
            fidelity="improved",
            reference="Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters, 2021, "
            "arXiv 2104.04473",
            deviations=(
                "no planner of the paper: all degrees that honour the pins and use the devices, cut where the "
                "busiest "
                "device is fastest (exact for one stage a device), the best few simulated under (interleaved) "
                "1F1B",
            ),
        ),
        Planner(
            name="tensor-parallel",
            summary="one stage, all operators split over the same devices, replicated: the best degree",
            load="pipebench_baselines.one_stage:tensor_parallel",
            calls=("1f1b", "1f1b*"),
            options=TensorParallelOptions,
            capabilities=Capabilities(
                regimes=("sync", "async"),
                replicas=True,
                tensor_parallel=True,
                recompute=True,
                expert_parallel=True,
                context_parallel=True,
                sharding_groups=True,
            ),
            reference="Shoeybi et al., Megatron-LM, 2019, arXiv 1909.08053; as a baseline in Tanaka et al., "
            "RaNNC, IPDPS 2021",
            deviations=(
                "operators run by the profile's tensor-parallel alternatives, whole where they have none; degrees "
                "are those of the profile",
                "layers recompute where `--recompute full` or `selective` is pinned; left alone nothing does. The "
                "whole of a single stage, `--recompute stage`, saves nothing",
                "accumulation: gradients of several micro-batches, which the version in the RaNNC paper lacks",
            ),
        ),
        Planner(
            name="gpipe-hybrid",
            summary="stages of as many layers, each with as many replicas, under GPipe: the best number of stages",
            load="pipebench_baselines.even_stages:gpipe_hybrid",
            calls=("gpipe",),
            options=HybridOptions,
            capabilities=Capabilities(
                regimes=("sync",), replicas=True, recompute=True, context_parallel=True, sharding_groups=True
            ),
            reference="Huang et al., GPipe, 2019, arXiv 1811.06965; GPipe-Hybrid of Tanaka et al., RaNNC, "
            "IPDPS 2021",
            deviations=HYBRID,
            default_scheduler={"sync": "gpipe"},
        ),
        Planner(
            name="pipedream-2bw",
            summary="stages of as many layers, each with as many replicas, no flush, two weight versions",
            load="pipebench_baselines.even_stages:pipedream_2bw",
            calls=("1f1b*",),
            options=HybridOptions,
            capabilities=Capabilities(
                regimes=("async",), replicas=True, recompute=True, context_parallel=True, sharding_groups=True
            ),
            reference=(
                "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training (PipeDream-2BW), ICML 2021, "
                "arXiv 2006.09503; as in Tanaka et al., RaNNC, IPDPS 2021, section IV-B"
            ),
            deviations=(
                "not the paper's planner: the best number of stages of those tried, as RaNNC's authors did it",
                "the suite's async memory is 2BW's: two weight versions and one gradient; under 1F1B*, whose "
                "micro-batches in flight are those that the period needs",
                *HYBRID,
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
                "Pipelined Model Parallelism, HAL 2020, hal-03025305"
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
