"""From a problem and options to the tables that a search works on."""

from dataclasses import dataclass

from pipebench.costs.model import CostModel
from pipebench.costs.quantise import NS_PER_S
from pipebench.domain.errors import UnsupportedProblem
from pipebench.domain.problem import Problem
from pipebench_pase.machine import Machine
from pipebench_pase.paper_layer_costs import RULES
from pipebench_pase.plugin import CostOptions
from pipebench_pase.tables import Pricing

GIGA, TERA = 1e9, 1e12
COARSE, FINE = 4, 1
"""Cutoffs of the prototype: for convolutional networks, and for the others."""


@dataclass(frozen=True, slots=True)
class Priced:
    """How a problem is priced. samples: those of one run of the strategy. unit_s: seconds of one unit of cost."""

    pricing: Pricing
    samples: int
    cutoff: int
    unit_s: float
    unit: str


def priced(problem: Problem, options: CostOptions) -> Priced:
    """The pricing that these options ask for.

    Raises UnsupportedProblem where the cluster's rates are asked for and it does not tell its peak.
    """
    samples = problem.pins.micro_batch or problem.mini_batch
    graph = problem.profile.graph
    cutoff = options.cutoff or (COARSE if any(op.kind == "conv2d" for op in graph.operators) else FINE)
    flops = options.tflops * TERA or _peak(problem)
    bandwidth = options.bandwidth * GIGA or problem.cluster.flat(problem.cluster.size).bandwidth_bytes_s
    machine = Machine(flops, flops / (bandwidth / options.word_bytes))
    forward, backward = CostModel(problem).times.at(samples)
    seconds = tuple((forward + backward) / NS_PER_S)
    pricing = Pricing(graph, samples, machine, options.parallel, seconds)
    return Priced(pricing, samples, cutoff, 1.0 / flops, "multiply-adds")


def _peak(problem: Problem) -> float:
    """Multiply-adds a second of the cluster's devices at the problem's precision."""
    kind = problem.cluster.type_of(0)
    peak = kind.peak_flops.get(problem.regime.precision, 0.0)
    if not peak:
        raise UnsupportedProblem(
            f"tflops=0 asks for the peak of {kind.name!r} in {problem.regime.precision}, which is not known",
            "give tflops",
        )
    return peak / 2


def assumptions(problem: Problem) -> tuple[str, ...]:
    """What is assumed of operators that say too little: those without dims, those of a kind without a rule."""
    plain = [op.name for op in problem.profile.graph.operators if not (op.dims and op.axes)]
    strange = [op.name for op in problem.profile.graph.operators if op.dims and op.axes and op.kind not in RULES]
    notices = []
    if plain:
        notices.append(
            f"{_listed(plain)} without dims: cut by samples only, every tensor taken to have samples as its first "
            "axis, arithmetic from the profile's times"
        )
    if strange:
        notices.append(f"{_listed(strange)} of a kind that PaSE has no formula for: arithmetic in equal shares")
    return tuple(notices)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"operator{'s' if len(names) > 1 else ''} {shown}"
