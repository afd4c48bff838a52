"""The MadPipe planner, the schedulers for stages that share devices, and the paper's figures."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from pipebench.domain.value import Value
from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact, Capabilities, Planner, ScheduleCapabilities, Scheduler

PIPEBENCH_API = 1
TITLE = (
    "Beaumont, Eyraud-Dubois, Shilova, MadPipe: Memory Aware Dynamic Programming Algorithm for Pipelined Model "
    "Parallelism"
)
REFERENCE = f"{TITLE}, HAL 2020, hal-03025305"

BOTH = (
    "V' = (V (+) U(k, l)) (+) C(k-1): the printed C(k) is an index slip, T_N and T_S use a^(k-1) (A1)",
    "at most P GPUs, not exactly P; several special stages may be left when no normal GPU is (printed: one) (A4)",
    "V = 0 is group 1, not 0 (A7, changes nothing)",
    "links of the special GPU and a neighbour on both sides of it: all four transfers share one link in phase 2; "
    "phase 1 bounds each cut alone, as printed (A11)",
    "phase 2 schedules the allocation of phase 1; its stages are not put on other GPUs (A12)",
    "B of a stage needs the activations of all its layers, and F of it takes U_F, not U (section 4.3) (A13)",
    "what a layer stores is the profile's figure, not the layer's input; workspace is counted (A14)",
    "cut behind any operator of the topological order, tensors that cross several cuts are passed on; "
    "cuts=layers cuts only where at most one tensor crosses, as the paper",
    "the micro-batch is swept; the paper takes it as given",
    "links of several levels: contiguous allocations only (exact), unsupported (paper)",
)
EXACT = (
    *BOTH,
    "exact: times and bytes are integers, V, t_P and m_P are exact (Pareto labels instead of a grid; A9, A10)",
    "exact: MadPipe-DP decides whether a target period is met; Algorithm 1 becomes a search that closes its "
    "bracket to 1/2000, and wholly where a plan meets the bound (A2, A3, A8)",
    "exact: a special stage of group g is charged by a bound that holds for every schedule; g - 1 live "
    "micro-batches, as printed, is too few and gives allocations that cannot be scheduled (A5)",
    "exact: neighbours on the special GPU exchange nothing and hold one buffer, not four; printed: a transfer "
    "(A6)",
    "exact: the best contiguous plan is a candidate; where the bound is not met, allocations for further target "
    "periods and local moves are scheduled too",
    "exact: chains of more than 40 layers are searched with cuts at single tensors first, then with some of all; "
    "of more than 200 the bound is what few labels prove",
    "exact: phase 2 is a branch and bound on difference constraints, with a limit of nodes",
)
PAPER = (
    "paper: line 7 of Algorithm 1 is lb <- max(lb, min(T_i, That_i)); printed is the larger of T_i and That_i, "
    "which can be infinite (A2)",
    "paper: line 2 sums C over the cuts 1 to L-1; no finite value in any iteration means infeasible (A3)",
    "paper: g - 1 live micro-batches of a special stage, and a transfer between special neighbours, as printed "
    "(A5, A6)",
    "paper: stages and transfers longer than the target, and loads above it, are left out (they cannot be "
    "in a plan that meets it) (A8)",
    "paper: how values go to the grid is not stated; rounding=up never promises less than it uses (A9)",
    "paper: on the grid the value may rise with the target, so that Algorithm 1 may miss the best one (A10)",
    "paper: the ILP is linear in 1/T and rebuilt from section 4.3; among equal allocations the first is taken",
    "paper: when the allocation has no schedule the answer is infeasible, as in the paper",
)


class MadPipeOptions(Value, frozen=True, kw_only=True):
    """Options of the planner `madpipe`.

    - variant: `exact` searches without a grid and proves a bound; `paper` is MadPipe-DP on its grid, then the ILP.
    - cuts: a stage begins at any of the `operators`, or (`layers`, as in the paper) only where one tensor crosses.
    - loads, memories, delays (paper): number of grid values for t_P, m_P and V.
    - rounding (paper): the grid value to which these are rounded.
    - iterations (paper): K of Algorithm 1.
    - ilp_seconds, ilp_nodes (paper): limits of phase 2 (0 nodes: none).
    """

    variant: Literal["exact", "paper"] = "exact"
    cuts: Literal["operators", "layers"] = "operators"
    loads: int = 101
    memories: int = 11
    delays: int = 51
    rounding: Literal["up", "nearest", "down"] = "up"
    iterations: int = 10
    ilp_seconds: float = 60.0
    ilp_nodes: int = 0


class BranchOptions(Value, frozen=True, kw_only=True):
    """Options of the scheduler `periodic-bnb`.

    - nodes: the most nodes of the search at one period.
    """

    nodes: int = 20_000


class IlpOptions(Value, frozen=True, kw_only=True):
    """Options of the scheduler `periodic-ilp`.

    - seconds, nodes: limits of the solver (0 nodes: none).
    """

    seconds: float = 60.0
    nodes: int = 0


@hookimpl
def pipebench_planners() -> Iterable[Planner]:
    """The planner `madpipe`."""
    return (
        Planner(
            name="madpipe",
            summary="memory-aware plans for async pipelines; a GPU may run several stages; with a proven gap",
            load="pipebench_madpipe.planner:plan",
            kernels=",".join(
                f"pipebench_madpipe.compilation:compile_{part}" for part in ("patterns", "allocations")
            ),
            options=MadPipeOptions,
            fidelity="improved",
            reference=REFERENCE,
            capabilities=Capabilities(graphs="dag", regimes=("async",), recompute=True, non_contiguous=True),
            deviations=(*EXACT, *PAPER),
            default_scheduler={"sync": "1f1b", "async": "periodic-bnb"},
        ),
    )


@hookimpl
def pipebench_schedulers() -> Iterable[Scheduler]:
    """periodic-bnb and periodic-ilp."""
    capabilities = ScheduleCapabilities(produces="periodic", placements=("listed",))
    return (
        Scheduler(
            name="periodic-bnb",
            summary="shortest periodic pattern of a plan whose stages may share devices, by branch and bound",
            load="pipebench_madpipe.periodic_bnb:schedule",
            options=BranchOptions,
            reference=REFERENCE,
            deviations=(
                "the problem of section 4.3, solved by branch and bound on difference constraints, not by an ILP",
                "any graph of stages, replicas and workspace; each stage also keeps to its in_flight",
            ),
            capabilities=capabilities,
        ),
        Scheduler(
            name="periodic-ilp",
            summary="shortest periodic pattern of a plan whose stages may share devices, by integer programming",
            load="pipebench_madpipe.periodic_ilp:schedule",
            options=IlpOptions,
            reference=f"{REFERENCE}, section 4.3",
            deviations=(
                "linear in 1/T, so that one program replaces a search over T; rebuilt from section 4.3, whose "
                "program is that of an earlier paper",
                "the solver's order of operations is solved again in integers, which gives the period",
            ),
            capabilities=replace(capabilities, named_only=True),
        ),
    )


FIGURES = (
    ("fig6", "PeriodsByMemory", "periods over memory for ResNet-50, estimates and schedules", "figure 6"),
    ("fig7", "PeriodsOverMadPipe", "PipeDream's period over MadPipe's, four networks", "figure 7"),
    ("fig8", "SpeedupsByDevices", "speedup over one device, four networks", "figure 8"),
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
            load=f"pipebench_madpipe.figures.{name}:{attribute}",
            reference=f"{REFERENCE}, {where}",
            paper=TITLE,
            deviations=FIGURE_DEVIATIONS,
        )
        for name, attribute, summary, where in FIGURES
    )
