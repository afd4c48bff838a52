"""The figures of the paper that can be run again: descriptors only."""

from pipebench.hooks import hookimpl
from pipebench.hooks.descriptors import Artefact

PAPER = (
    "Beaumont, Eyraud-Dubois, Shilova, MadPipe: Memory Aware Dynamic Programming Algorithm for Pipelined Model "
    "Parallelism"
)
DEVIATIONS = (
    "profiles are computed from shapes for a V100 at 1000 x 1000, unless files are given; the paper measured, "
    "on a platform that it does not name",
    "files are scaled to images of 1000 x 1000: times and activations by the ratio of pixels",
    "the paper plots its series and prints no values: its claims can be tested, its curves cannot",
    "steps of P and M are ours: the paper gives the ranges",
    "the paper's sentence on PipeDream's memory can be read in three ways; all three are run and named",
)


@hookimpl
def pipebench_artefacts() -> tuple[Artefact, ...]:
    """Figures 6, 7 and 8."""
    return tuple(
        Artefact(
            name=f"madpipe/{name}",
            summary=summary,
            load=f"pipebench_madpipe.figures.{name}:{name.capitalize()}",
            reference=f"{PAPER}, hal-03025305, {where}",
            paper=PAPER,
            deviations=DEVIATIONS,
        )
        for name, summary, where in (
            ("fig6", "periods over memory for ResNet-50, estimates and schedules", "figure 6"),
            ("fig7", "PipeDream's period over MadPipe's, four networks", "figure 7"),
            ("fig8", "speedup over one device, four networks", "figure 8"),
        )
    )
