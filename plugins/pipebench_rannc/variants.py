"""Where paper and released code differ: what each variant stands for."""

from dataclasses import dataclass, fields
from typing import Any, Literal

from pipebench_rannc.plugin import RaNNCOptions
from pipebench_rannc.stage_dp import Prune


@dataclass(frozen=True, slots=True)
class Differences:
    """The options of plugin.RaNNCOptions that have a value for each variant."""

    coarsening: Literal["paper", "released"]
    uncoarsening: bool
    compaction: Literal["own", "union"]
    replicas: Literal["any", "powers"]
    communication: Literal["out", "both"]
    margin: float
    in_flight: Literal["all", "one"]
    prune: Prune
    nodes: Literal["doubling", "divisors"]
    stages: Literal["printed", "next"]
    micro_batches: int
    choice: Literal["bottleneck", "steps"]
    labels: Literal["one", "all"]


PAPER = Differences(
    coarsening="paper",
    uncoarsening=True,
    compaction="own",
    replicas="any",
    communication="out",
    margin=0.0,
    in_flight="all",
    prune="printed",
    nodes="doubling",
    stages="printed",
    micro_batches=0,
    choice="bottleneck",
    labels="one",
)
RELEASED = Differences(
    coarsening="released",
    uncoarsening=False,
    compaction="union",
    replicas="powers",
    communication="both",
    margin=0.1,
    in_flight="one",
    prune="stages",
    nodes="divisors",
    stages="next",
    micro_batches=32,
    choice="steps",
    labels="one",
)


def differences(options: RaNNCOptions) -> Differences:
    """The differences of the variant (best: paper), with the options that the user sets."""
    base = RELEASED if options.variant == "released" else PAPER
    chosen: dict[str, Any] = {
        field.name: getattr(base, field.name) if (said := getattr(options, field.name)) is None else said
        for field in fields(Differences)
    }
    return Differences(**chosen)
