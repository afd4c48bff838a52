"""Alpa's inter-operator planner as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value, require_count
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner

PIPEBENCH_API = 1
MemoryCount = Literal["released", "suite"]


class AlpaOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `alpa-inter`.

    - layers: operators are clustered into at most so many layers.
    - imbalance: how much more work than the mean a layer may have.
    - submeshes: rows of whole hosts in powers of two, or `all` numbers of them.
    - memory: `suite` counts all that the suite does of a stage; `released` leaves out workspace and transfer
      buffers and counts a parameter with each of its operators.
    """

    layers: int = 48
    imbalance: float = 0.5
    submeshes: Literal["power_of_two", "all"] = "power_of_two"
    memory: MemoryCount = "suite"

    def __post_init__(self) -> None:
        require_count("layers", self.layers)


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `alpa-inter`."""
    return (
        Planner(
            name="alpa-inter",
            summary="interval DP over submeshes: sum of stage times + (B - 1) times the largest",
            load="pipebench_alpa.planner:plan",
            calls=("1f1b",),
            options=AlpaOptions,
            fidelity="code-checked",
            reference="Zheng et al., Alpa: Automating Inter- and Intra-Operator Parallelism for Distributed Deep "
            "Learning, OSDI 2022, arXiv 2201.12023",
            capabilities=Capabilities(
                graphs="dag",
                regimes=("sync",),
                replicas=True,
                tensor_parallel=True,
                context_parallel=True,
                sharding_groups=True,
            ),
            deviations=(
                "code-checked is the DP; stage times are sums of the profile's operators, with its "
                "alternatives for "
                "tensor parallelism, where Alpa compiles and measures each stage (intra-operator pass)",
                "64-bit floats; the released code has 32-bit ones and skips bounds closer than 1e-6 s",
                "a stage on n devices is q-way tensor and n/q-way data parallel, n/q divides the micro-batch; an "
                "operator without alternative for q runs whole on each of the q devices",
                "as released, stage times leave out transfers between stages and the all-reduce of weights, all "
                "devices are used, and the whole cluster is a submesh for the whole model only",
                "memory=suite (default): the suite's memory of the s-th stage from the end with s micro-batches "
                "live, as 1F1B holds, with its workspace and transfer buffers. memory=released: weight state, "
                "fixed bytes and s sets of what is saved; the released measured peak holds one set more",
                "layers are cut from one topological order where the fewest bytes cross, with work at most "
                "1 + imbalance times the mean; the released rule counts FLOPs",
                "the micro-batch is a profiled one that divides the mini-batch, the best by simulated mini-batch "
                "time; Alpa takes it as given",
            ),
        ),
    )
