"""Who is compared in the paper's figures, as which planner here; their throughput in words and as a curve."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from pipebench.algorithms.chains.level_cuts import BALANCE
from pipebench.artefacts.curves import curve
from pipebench.artefacts.result_grid import Contender, ResultGrid
from pipebench.domain.artefact import Curve
from pipebench.domain.recomputation import RecomputePin

P = TypeVar("P", bound=Hashable)

DATA_PARALLEL = Contender("dp", "data parallelism", "data-parallel", 0)
MEGATRON = Contender("megatron", "Megatron-LM", "tensor-parallel[accumulation=false]", 1)
MEGATRON_KEPT = Contender("megatron-kept", "Megatron-LM, nothing recomputed", MEGATRON.planner, 7)
HYBRID = Contender("hybrid", "GPipe-Hybrid", "gpipe-hybrid", 2)
TWO_BW = Contender("2bw", "PipeDream-2BW", "pipedream-2bw", 3)
"""The one asynchronous planner."""
MODEL = Contender("model", "GPipe-Model", "gpipe-hybrid[cuts=time]", 2)
PAPER = Contender("paper", "RaNNC as printed", "rannc[variant=paper]", 4)
RELEASED = Contender("released", "RaNNC as released", "rannc[variant=released]", 5)
BEST = Contender("best", "RaNNC, best", "rannc", 6)
RANNCS = (PAPER, RELEASED, BEST)
RECOMPUTED: dict[str, RecomputePin] = {DATA_PARALLEL.key: "none", MEGATRON.key: "full", MEGATRON_KEPT.key: "none"}
"""What contenders recompute, by key (section IV-A): the authors gave Megatron-LM gradient checkpointing, which is
by layer, and data parallelism none. The others choose between whole stages and nothing, as RaNNC does."""


def rate_text(grid: ResultGrid[P], place: P, who: Contender) -> str:
    """Throughput, number of stages, and balance (busiest stage / mean) of the contender's plan."""
    row = grid.plan_row(place, who)
    if row is None or row.throughput is None:
        return f"{who.label} has no plan"
    balance = row.counters.get(BALANCE)
    shape = f"{row.stages} stages" + (f", balance {balance / 1000:.2f}" if balance else "")
    return f"{who.label} {row.throughput:.4g}/s ({shape})"


def rate_curve(grid: ResultGrid[P], places: Sequence[P], who: Contender, x: Callable[[P], float]) -> Curve:
    """Samples a second along an axis."""
    return curve(who, places, x, lambda place: grid.rate(place, who), lambda place: grid.has_no_plan(place, who))
