"""The PipeDream planner as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner
from pipebench_pipedream.deviations import DEVIATIONS

PIPEBENCH_API = 1
Replication = Literal["any", "none"]


class PipeDreamOptions(Value, frozen=True, kw_only=True):
    """cost: whose cost model the search minimises: `suite` the shared one, `paper` PipeDream's, `released` that
    of the published optimizer. order (states=chain): how operators are put in a line: `branch` finishes a branch
    before it starts the next, `level` goes by the longest distance from the inputs. form: the search, `k` a
    dynamic program (suite: over stage counts) or `bs` a bisection on the target (same bottleneck). execution
    (sync): `sequential` runs the stages one after the other, `graph` only waits for tensors. replication: `none`
    gives every stage one device.

    The rest is for cost=paper and cost=released. states: where stages may be cut, in the line (`chain`), at every
    downset (`antichain`: several sources hang on a virtual root), or where the published walk comes from the
    first source (`first-source`). branches: `joined` makes one unit of the operators of a branch (published as a
    step before the optimizer). communication: whether cuts cost time, None as the model has it (paper `charged`,
    released `free`). levels: `nested` optimises link level by link level, `flat` takes the slowest. idle: devices
    may stay idle. memory: `p` the paper's (ceil(devices from the stage on / replicas) times weights and
    activations; not checked in cost=released), `released` the published check, without the stage itself.
    """

    cost: Literal["suite", "paper", "released"] = "suite"
    order: Literal["branch", "level"] = "branch"
    form: Literal["k", "bs"] = "k"
    execution: Literal["sequential", "graph"] = "sequential"
    replication: Replication = "any"
    states: Literal["chain", "antichain", "first-source"] = "chain"
    branches: Literal["kept", "joined"] = "kept"
    communication: Literal["charged", "free"] | None = None
    levels: Literal["flat", "nested"] = "flat"
    idle: bool = False
    memory: Literal["p", "decreasing", "released"] = "p"


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `pipedream`."""
    return (
        Planner(
            name="pipedream",
            summary="chain DP with replicated stages: smallest bottleneck period over a linear operator order",
            load="pipebench_pipedream.planner:plan",
            options=PipeDreamOptions,
            fidelity="reconstructed",
            reference="Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP 2019",
            capabilities=Capabilities(graphs="dag", regimes=("sync", "async"), replicas=True),
            deviations=DEVIATIONS,
        ),
    )
