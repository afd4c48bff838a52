"""The PipeDream planner as a plugin."""

from collections.abc import Iterable
from typing import Literal

from pipebench.domain.plan import ReplicaMode
from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Capabilities, Planner
from pipebench_pipedream.original import ORIGINAL

PIPEBENCH_API = 1
Replication = Literal["any", "none"]

CutStates = Literal["chain", "antichain", "first-source"]
MemoryReading = Literal["p", "decreasing", "released"]
DEVIATIONS = (
    "cost=suite is the default and what all lines without a cost are about; cost=paper and cost=released "
    "minimise PipeDream's own model, at the largest profiled micro-batch that divides the mini-batch (the "
    "profiled mini-batch of a graph.txt)",
    "cost=paper: a stage takes max(compute, 2(m-1)w/B)/m, each cut 2a/B, memory holds weights and activations "
    "ceil(devices from the stage on / m) times, the stage itself counted; from memory of SOSP 2019, not "
    "checked against it",
    "cost=released reproduces optimizer_graph_hierarchical: (compute + 4(m-1)w/(mB))/m, so the all-reduce is "
    "divided twice; cuts are free unless communication=charged (a compression ratio of 1), then 2a/(Bm) with "
    "the replicas downstream, and the first stage's output only through the second",
    "cost=released: a cut's bytes are those of the augmented antichain, which counts a tensor that two of its "
    "members read even where nothing outside does; cost=paper counts what crosses",
    "cost=released, memory=released (its default; the code checks memory when asked): the stage's own "
    "micro-batch is not counted, so the last stage and every single stage cost no memory; no gradients, no "
    "optimizer. Python 3's division (Python 2 floors it and finds other plans)",
    "cost=released, levels=nested: the all-reduce of a single stage is divided by the machines of the level "
    "inside, that of later stages is not; inner levels take differences between states that do not lie in "
    "each other (no effect on any optimum seen); cost=paper does neither",
    "states=first-source (cost=released's default): cuts are enumerated from the first source in the order of "
    "the profile (as Python 3 does in that of the file); states=antichain hangs all sources on a virtual root",
    "corrected in both: memory with idle devices (the code fails), an infeasible straight pipeline (reported, "
    "not a crash in printing), the last stage's printed compute time, a tie is broken by the first split "
    "found (the code's sums change from run to run)",
    "branches=joined is the code's branch compression; its path and its fidelity check, which fail, are left out",
    "replicas of a stage take whole micro-batches in turn, as the paper's successive mini-batches: each runs b "
    "samples once in d micro-batches. replicas=split, not in the paper: they share the samples of each, "
    "ceil(b/d), as in GraphPipe's SPP baseline",
    "costs are the suite's: compute of b samples and the ring all-reduce of one mini-batch spread over its "
    "micro-batches, both divided by the replicas; the paper takes the larger of compute and weight "
    "synchronisation, the released optimizer adds them but divides the synchronisation by the replicas a second "
    "time",
    "cost=suite has one link level, with the slowest bandwidth and the largest latency of all that the "
    "devices span, for transfers wherever stages are cut; all-reduces on the levels that as many devices from "
    "the first on span; paper and code optimise level by level",
    "replicas at one cut: a message goes from one replica to one other, and their link has one in lcm(d, d') "
    "micro-batches (split: it runs at min(d, d') links); the released optimizer counts the downstream replicas "
    "only, and charges cuts only when a compression ratio is given. Degrees at one cut whose common multiple is "
    "above 1,024 are left out",
    "async: a cut is a resource of its own (the larger of stage and cut counts, as in the paper); sync: what "
    "leaves a stage is added to it, forward and back, at the stage's own replicas, each tensor once (the form "
    "in which GraphPipe describes its SPP baseline)",
    "async memory=decreasing (default) is MadPipe's reading E1 extended to replicas: three weight copies, "
    "message buffers, and ceil(devices from here on / replicas) live micro-batches with the stage itself counted",
    "async memory=p is reading E0, the words of MadPipe's section 5.1: the same with ceil(all devices / replicas) "
    "live micro-batches in every stage",
    "async memory=released is reading E2, the released optimizer's: ceil(devices behind / replicas) times weights "
    "and activations, so the last stage is free, and neither gradient nor buffers; the plan is checked and "
    "scheduled with all of them, so it may turn out not to fit",
    "sync (not in the paper): two weight copies; a replica holds ceil(devices from here on / replicas) "
    "micro-batches, and more where memory allows it and 1F1B with a fixed order needs them to keep the pace; "
    "replica counts are powers of two and divisors of the number of devices that divide the micro-batches of a "
    "mini-batch. split: the k-th stage from the end holds k micro-batches, counts divide the micro-batch or are "
    "all devices",
    "sync: the bottleneck leaves out how long the pipeline fills and drains at each update and the all-reduce "
    "behind it, so the plan may lose to plain data parallelism, which is in its space",
    "at most all devices are used; the paper and the code by default use all of them",
    "operators are cut in one linear order, given by `order`; the released optimizer cuts at the antichains "
    "that it reaches from one source",
    "the micro-batch is swept: by simulated mini-batch time in sync, in async by the period of 1F1B-RR, or of "
    "1F1B* without replicas; the paper takes it as given. Sizes are profiled ones (split: those that leave "
    "replicas a profiled size; powers of two of samples where one size was profiled, in async that size); split: "
    "unless it is pinned, a stage takes as many replicas as leave none more samples than were profiled; sizes "
    "that a proven bound shows to be slower than the best so far are left out",
    "inner=PLANNER, not in the paper: once the plan is found, each replicated stage is offered to that planner as "
    "a problem of its own (its operators and devices, one micro-batch, which its devices then share); its splits "
    "are kept where the simulated "
    "mini-batch gets shorter and the plan still fits. PaSE names this as complementary",
    "async: a partition that the scheduler cannot fit in memory is skipped; the paper runs its own 1F1B-RR with "
    "a fixed number of mini-batches in flight",
)
"""In the order: the options that choose a model, cost=paper and cost=released, then cost=suite."""


class PipeDreamPlannerOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `pipedream`.

    - cost: whose cost model the search minimises: `suite` is the shared one, `paper` is PipeDream's, `released`
      that of the published optimizer.
    - order (cost=suite, states=chain): the line of operators: `branch` finishes a branch before it starts the
      next, `level` goes by the longest distance from the inputs.
    - form: the search: `k` is a dynamic program (suite: over stage counts), `bs` a bisection on the target (same
      bottleneck).
    - execution (sync): `sequential` runs the stages one after the other, `graph` only waits for tensors.
    - replication: `none` gives every stage one device.
    - replicas: `round_robin`: those of a stage take whole micro-batches in turn (PipeDream's 1F1B-RR). `split`:
      they share the samples of each.
    - memory (async): how many micro-batches a stage is taken to hold: `p` as many as there are devices (E0),
      `decreasing` one for each device from its own to the last (E1), `released` as the released optimizer counts
      (E2: not its own, no gradients, no buffers). None: as the cost has it, cost=released `released`, the others
      `decreasing`. cost=paper takes `decreasing`, times weights and activations; cost=released checks memory with
      `released` only, as the optimizer does when asked.
    - inner (cost=suite): a planner, such as pase, that splits the operators of a replicated stage over its
      devices. The split is kept where it makes the mini-batch shorter.
    - states (cost=paper, cost=released): where stages may be cut: in the line (`chain`), at every downset
      (`antichain`: several sources hang on a virtual root), or where the published walk comes from the first
      source (`first-source`). None: cost=released `first-source`, cost=paper `chain`.
    - branches (cost=paper, cost=released): `joined` makes one unit of the operators of a branch (published as a
      step before the optimizer).
    - communication (cost=paper, cost=released): whether cuts cost time; None: as the model has it (paper
      `charged`, released `free`).
    - levels (cost=paper, cost=released): `nested` optimises link level by link level, `flat` takes the slowest.
    - idle (cost=paper, cost=released): devices may stay idle.
    """

    cost: Literal["suite", "paper", "released"] = "suite"
    order: Literal["branch", "level"] = "branch"
    form: Literal["k", "bs"] = "k"
    execution: Literal["sequential", "graph"] = "sequential"
    replication: Replication = "any"
    replicas: ReplicaMode = "round_robin"
    states: CutStates | None = None
    branches: Literal["kept", "joined"] = "kept"
    communication: Literal["charged", "free"] | None = None
    levels: Literal["flat", "nested"] = "flat"
    idle: bool = False
    memory: MemoryReading | None = None
    inner: str = ""

    @property
    def cut_states(self) -> CutStates:
        """Where stages may be cut, under these options."""
        return self.states or ("first-source" if self.cost == "released" else "chain")

    @property
    def memory_reading(self) -> MemoryReading:
        """How memory is counted, under these options."""
        return self.memory or ("released" if self.cost == "released" else "decreasing")


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `pipedream`."""
    return (
        Planner(
            name="pipedream",
            summary="chain DP with replicated stages: smallest bottleneck period over a linear operator order",
            load="pipebench_pipedream.planner:plan",
            kernels="pipebench_pipedream.suffix_dp:compile_suffixes",
            calls=("1f1b", "1f1b*", "1f1b-rr"),
            default_scheduler={"sync": "1f1b", "async": "1f1b-rr"},
            options=PipeDreamPlannerOptions,
            fidelity="reconstructed",
            reference="Narayanan et al., PipeDream: Generalized Pipeline Parallelism for DNN Training, SOSP 2019, "
            "doi 10.1145/3341301.3359646",
            capabilities=Capabilities(
                graphs="dag",
                regimes=("sync", "async"),
                replicas=True,
                round_robin=True,
                context_parallel=True,
                sharding_groups=True,
            ),
            original=ORIGINAL,
            deviations=DEVIATIONS,
        ),
    )
