"""Who is compared in the paper's figures, and in ours beside them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contender:
    """One planner of the figures. short: its name over a column."""

    key: str
    label: str
    short: str
    planner: str
    colour: int


BEST = Contender("best", "GraphPipe best", "GP", "graphpipe", 0)
PAPER = Contender("paper", "GraphPipe paper", "paper", "graphpipe[variant=paper]", 6)
PLAIN = Contender("plain", "GraphPipe paper, no memo", "no memo", "graphpipe[variant=paper,memo=false]", 2)
BY_COUNT = Contender("k", "PipeDream k", "PD", "pipedream", 1)
BY_TARGET = Contender("bs", "PipeDream bs", "PD bs", "pipedream[form=bs]", 5)
LEVELS = Contender("level", "PipeDream k, level order", "level", "pipedream[order=level]", 7)
GRAPH = Contender("graph", "PipeDream+graph", "PD+G", "pipedream[execution=graph]", 3)
DATA = Contender("data", "data parallel", "DP", "data-parallel", 4)
PIPER = Contender("piper", "Piper", "Piper", "piper", 7)

GRAPHPIPES = (PAPER, BEST)
SEQUENTIAL = (BY_COUNT, BY_TARGET)
"""The paper's baseline SPP in two forms: its stages wait for one another in the order of the chain."""
BASELINES = (*SEQUENTIAL, GRAPH, DATA)
"""PipeDream+graph: PipeDream's own partition, whose stages wait only for what they read; not in the paper."""
EVERYONE = (BEST, PAPER, *BASELINES, PIPER)
