"""Who is compared in the paper's figures, and as which planner here."""

from dataclasses import dataclass

from pipebench.domain.problem import RegimeMode


@dataclass(frozen=True, slots=True)
class Contender:
    """key: in cells. planner: as on the command line. colour: of its curve."""

    key: str
    label: str
    planner: str
    colour: int
    regime: RegimeMode = "sync"


DATA_PARALLEL = Contender("dp", "data parallelism", "data-parallel", 0)
MEGATRON = Contender("megatron", "Megatron-LM", "tensor-parallel[accumulation=false]", 1)
HYBRID = Contender("hybrid", "GPipe-Hybrid", "gpipe-hybrid", 2)
TWO_BW = Contender("2bw", "PipeDream-2BW", "pipedream-2bw", 3, "async")
MODEL = Contender("model", "GPipe-Model", "gpipe-hybrid[cuts=time]", 2)
PAPER = Contender("paper", "RaNNC as printed", "rannc[variant=paper]", 4)
RELEASED = Contender("released", "RaNNC as released", "rannc[variant=released]", 5)
BEST = Contender("best", "RaNNC, best", "rannc", 6)
RANNCS = (PAPER, RELEASED, BEST)
