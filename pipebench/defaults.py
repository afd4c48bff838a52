"""The components that the host names: its own choices where the user makes none, and the examples in its messages.

No other module of the host names a component that ships. To put another component into a role, change it here.
The module imports nothing of the host, so every layer may read it.
"""

from typing import Literal

Mode = Literal["sync", "async"]
"""Update regime, as `pipebench.domain.problem.RegimeMode`."""

Placement = Literal["apart", "in-turn", "v", "wave", "mirrored", "listed"]
"""How stages stand on device sets, as `pipebench.domain.placement.PlacementKind`."""

ONE_F_ONE_B = "1f1b"
"""Finite schedule of a plan with one stage on each device set."""
ONE_F_ONE_B_STAR = "1f1b*"
"""Periodic schedule of a chain; `pipebench.algorithms.chains.one_f_one_b_star` makes it."""
ROUND_ROBIN = "1f1b-rr"
"""Periodic schedule of stages whose replicas take micro-batches in turn."""
INTERLEAVED = "interleaved-1f1b"
"""Finite schedule of several stages on each device set, in turn."""

IN_A_V = "zb-v"
"""Finite schedule of two stages on each device set, in a V."""

_SCHEDULERS: dict[tuple[Mode, Placement], str] = {
    ("sync", "apart"): ONE_F_ONE_B,
    ("sync", "in-turn"): INTERLEAVED,
    ("sync", "v"): IN_A_V,
    ("sync", "wave"): INTERLEAVED,
    ("sync", "mirrored"): "chimera",
    ("sync", "listed"): INTERLEAVED,
    ("async", "apart"): ONE_F_ONE_B_STAR,
    ("async", "in-turn"): ONE_F_ONE_B_STAR,
    ("async", "v"): ONE_F_ONE_B_STAR,
    ("async", "wave"): ONE_F_ONE_B_STAR,
    ("async", "mirrored"): ONE_F_ONE_B_STAR,
    ("async", "listed"): ONE_F_ONE_B_STAR,
}


def scheduler_for(mode: Mode, placement: Placement = "apart", in_turn: bool = False) -> str:
    """The scheduler of a plan whose planner and user name none, by regime and placement.

    in_turn: whether replicas take micro-batches in turn.
    A planner's `default_scheduler` comes first. A new placement gets one line in `_SCHEDULERS` for each regime.
    """
    return ROUND_ROBIN if in_turn and mode == "async" else _SCHEDULERS[mode, placement]


def schedulers() -> dict[Mode, str]:
    """Scheduler by regime for plans with one stage on each device set."""
    return {"sync": scheduler_for("sync"), "async": scheduler_for("async")}


FRAMEWORK_SCHEDULERS = (ONE_F_ONE_B, INTERLEAVED)
"""Schedulers that training frameworks have built in."""

MEASURED_SCHEDULERS: dict[str, str] = {
    ONE_F_ONE_B: ONE_F_ONE_B,
    INTERLEAVED: INTERLEAVED,
    "gpipe": "gpipe",
    "zb-h1": "zb-h1",
    IN_A_V: IN_A_V,
    "zb-1p": "greedy[live=1]",
    "zb-2p": "greedy[live=2]",
}
"""By the word for the schedule of a measured run. zb-1p and zb-2p search an order within the memory of one and of
two 1F1Bs (Qi et al. 2023, section 4), as the greedy orders with so many micro-batches in flight do.
"""

SIMULATOR = "simulate"
"""The executor that predicts: it makes every simulated trace of the suite, and runs where no executor is named."""
MEASURING_EXECUTOR = "torch"
"""The executor of `pipebench execute`, and the example of one that measures."""

PROFILER = "analytic"
"""The profiler of models where none is named."""
MEASURING_PROFILER = "torch"
"""The example of a profiler that measures operators and links."""

CLUSTER = "flat"
"""The cluster where none is named."""
LATEST_NODES = "dgx-h100"
"""The cluster whose links are taken for a device that no cluster of the table has."""
SUITE = "quick"
"""The suite where no suite, model or profile is named."""
LANGUAGE_MODEL = "llm"
"""The model that is built from a config.json (`--config`)."""

FIRST_PLANNERS = ("layout", "uniform")
"""Planners that `best` runs first: fast ones, so that there is a plan whatever the others take."""
NEXT_PLANNERS = ("data-parallel", "tensor-parallel", "graphpipe", "pipedream", "madpipe", "alpa-inter", "piper")
"""Planners that `best` runs before all others, which may get no time."""
BEST = "best"
"""What stands for all planners and the search that follows; no component has this name."""
SEARCH_PLANNER = "local-search"
"""The planner with which `best` goes on from the plans of all others."""
LAYOUT_PLANNER = "layout"
"""The planner of layouts that frameworks can express: it plans what is nearest to a refused export."""

KIT_SCHEDULERS: dict[Literal["finite", "periodic"], tuple[Mode, str, str]] = {
    "finite": ("sync", ONE_F_ONE_B, "gpipe"),
    "periodic": ("async", ROUND_ROBIN, "periodic-bnb"),
}
"""What orders the plans of the kit's executor checks, by kind of schedule.

Regime of the problems; scheduler; scheduler for stage graphs and shared devices where the first cannot order them.
"""

YARDSTICK = "data-parallel"
"""The planner that stands in every table of `compare`, whatever is compared."""

COMPARED_PLANNERS = ("madpipe", "graphpipe", "rannc", "pase", "pipedream", "piper")
"""The planners of papers, which `compare` runs where neither the user nor a suite names any."""

EXAMPLE_PLANNERS = ("madpipe", "graphpipe")
EXAMPLE_MODEL = "resnet50"
"""What messages and help texts give as examples. The model is a profile that ships too."""
EXAMPLE_CUTS = ("uniform", "contiguous-exact")
"""Planners that the figure of a new artefact package compares: equal cuts, and balanced ones."""
