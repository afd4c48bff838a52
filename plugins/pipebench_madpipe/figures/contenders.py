"""Who is compared in the paper's figures, and in ours beside them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contender:
    """One planner of the figures. estimated: its first phase expects a period that its schedule may miss."""

    key: str
    label: str
    planner: str
    estimated: bool = False
    colour: int = 0


BASELINES = (
    Contender("p", "PipeDream, memory p (E0)", "pipedream[memory=p]", True, 0),
    Contender("decreasing", "PipeDream, memory decreasing (E1)", "pipedream[memory=decreasing]", True, 1),
    Contender("released", "PipeDream, memory released (E2)", "pipedream[memory=released]", True, 2),
)
"""The paper's baseline under the three readings of its memory estimate, each scheduled by 1F1B*."""
PAPER = Contender("paper", "MadPipe, variant paper", "madpipe[variant=paper]", True, 3)
IMPROVED = Contender("improved", "MadPipe, improved", "madpipe", False, 4)
MADPIPES = (PAPER, IMPROVED)
CONTIGUOUS = Contender("contiguous", "best contiguous, 1F1B*", "contiguous-exact", False, 5)
CONTENDERS = (*BASELINES, CONTIGUOUS, PAPER, IMPROVED)
"""In the order of legends; a later curve is drawn over an earlier one."""
